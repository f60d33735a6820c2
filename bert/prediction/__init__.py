"""Predictions from model outputs, one module per task. ``TASKS`` is the registry of tasks. No files, no training.

A task's module has ``predict(scorer, rows, *, details=False, measure="")``, which returns a list of predictions in the
order of the rows (see `scores.Scorer`), and the settings that config.json stores under the task's name. Training and
evaluation of the task are in tasks/NAME/, its settings in configs/NAME.py.
"""

import importlib
from types import ModuleType

# Task -> the part of a head that identifies the task of a model trained by another program ("": none).
TASKS: dict[str, str] = {
    "classification": "sequence_classifier",
    "bio_mrc": "",
    "squad": "span",
    "tagging": "token_classifier",
    "pictures": "",
    "translation": "",
    "captioning": "",
}


def module_of(task: str) -> ModuleType:
    """The module of a task in this folder; JAX and the others load only when it is asked for."""
    return importlib.import_module(f"{__name__}.{task}")
