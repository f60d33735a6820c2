"""Our speed beside that of others: each implementation is a process of its own (ours.py, torch_peer.py, ...) that waits
for orders, so that they can be timed in turns. `cpu.py` compares on this machine's CPU, `gpu.py` on one GPU, `glue.py`
dev scores after fine-tuning, `host_gap.py` measures the host between two steps of a real run."""
