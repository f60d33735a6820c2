"""One file a task: it reads examples, builds the head, the loss and the metrics.

Only this folder knows data sets. `job.py` says what a task file offers to launch.finetune.
"""
