"""The pretraining command on a model of one narrow block, six steps with three checkpoints; for tests of faults."""

import pathlib

STEPS = 6


def command(data: pathlib.Path, workdir: pathlib.Path) -> list[str]:
    return [
        "pretrain",
        "--config=configs/pretrain.py:tiny",
        *(f"--config.total_steps={STEPS}", "--config.batch_size=8", "--config.max_length=32"),
        *("--config.model.max_position_embeddings=64", "--config.model.hidden_size=32", "--config.model.num_layers=1"),
        *("--config.optimizer.warmup_steps=2", "--config.optimizer.schedule=constant", "--config.allocator=system"),
        *("--config.log_every=1", "--config.evaluate_every=3", "--config.save_every=2"),
        f"--config.data={data}",
        f"--workdir={workdir}",
    ]
