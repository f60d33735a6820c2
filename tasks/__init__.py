"""One file a task: it reads examples, builds the head, the loss and the metrics, and writes predictions.

Only this folder knows data sets. `job.py` says what a task file offers to launch.finetune.
"""
