"""Tasks for fine-tuning, one folder each. Only this folder knows data sets.

tasks/NAME/job.py reads the examples of a training run and builds head, loss and metrics (`job.ExamplesJob`).
tasks/NAME/evaluate.py scores a trained model on files and writes its predictions (`evaluation.Evaluator`). Commands
find both by NAME. Shared parts: files/, questions/ and annotations/ read files, votes.py and token_labels.py make
targets, metrics/ has the metrics.

A new task is tasks/NAME/ with these two files, bert/prediction/NAME.py, configs/NAME.py, and a line in
`bert.prediction.TASKS`.
"""

import importlib
from types import ModuleType

from bert.errors import check_choice
from bert.prediction import TASKS


def module_of(task: str, part: str) -> ModuleType:
    """tasks/TASK/job.py or tasks/TASK/evaluate.py.

    Raises:
      InputError: there is no such task.
    """
    check_choice("config.task", task, TASKS, hint=", as in configs/table.py")
    return importlib.import_module(f"{__name__}.{task}.{part}")
