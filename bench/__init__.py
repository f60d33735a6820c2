"""Benchmarks against other implementations. Each one runs in its own process (ours.py, torch_peer.py, ...) and times
steps on request, so that they can take turns. `cpu.py` compares on this machine's CPU, `gpu.py` on one GPU, `glue.py`
dev scores after fine-tuning. `glue_table.py` makes GLUE's table of given models, `glue_scratch.py` of encoders that it
pretrains. `host_gap.py` measures the work of the host between two steps of a real run."""
