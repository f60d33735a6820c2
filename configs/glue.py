"""Fine-tuning on a task of GLUE, from the files as GLUE distributes them.

    --config=configs/glue.py:TASK --config.data=FOLDER      TASK: cola, sst2, mrpc, stsb, rte, wnli, qnli, qqp, mnli

The same fields as configs/table.py, whose comments explain them. The paper chooses the learning rate of each task on
its validation part among 5e-5, 4e-5, 3e-5 and 2e-5, with batches of 32 and 3 epochs (section 4.1).
"""

from ml_collections import ConfigDict

from configs import table


def get_config(task: str = "sst2") -> ConfigDict:
    config = table.get_config()
    config.glue = task
    config.validation_share = 0.0  # the files have a validation part
    config.optimizer.learning_rate = 3e-5 if task in ("cola", "sst2", "qnli", "qqp", "mnli") else 5e-5
    return config
