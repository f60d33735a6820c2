"""The pretraining command on the smallest model, six steps."""

from launch import pretrain

TINY = (
    "--config=configs/pretrain.py:tiny",
    "--config.total_steps=6",
    "--config.batch_size=8",
    "--config.max_length=32",
    "--config.model.max_position_embeddings=64",
    "--config.optimizer.warmup_steps=2",
    "--config.optimizer.schedule=constant",  # total_steps is no part of the step then: one compilation for all lengths
    "--config.log_every=2",
    "--config.evaluate_every=3",
    "--config.save_every=2",
    "--config.allocator=system",
)


def run(*words) -> None:
    pretrain.run(["pretrain", *map(str, words)])
