"""Batches -> weights: the task protocol, the optimizer, sharding, the loop, checkpoints, evaluation, run logs."""
