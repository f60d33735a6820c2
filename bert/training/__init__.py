"""Training: the task protocol, optimizers, schedules, sharding, the loop, checkpoints, evaluation, logs."""
