"""Recipes: a folder a task, with its name in bert/prediction and configs/. Only this folder knows data sets.

tasks/NAME/job.py reads the examples of a training run and builds head, loss and metrics (`job.ExamplesJob`);
tasks/NAME/evaluate.py scores a finished model on files and writes its predictions (`evaluation.Evaluator`). The
launchers find both by the name. Shared: files/ and questions/ read files, votes.py and token_labels.py make targets,
metrics/ holds the metrics.

A new task is this folder with its two files, bert/prediction/NAME.py, configs/NAME.py, and a line in
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
