"""Model outputs -> predictions, a module a task; ``TASKS`` is the registry of tasks. No files, no training.

A module of a task has ``predict(scorer, rows, *, details=False)`` (a list of predictions in the order of the rows, see
`scores.Scorer`), and the settings that travel in config.json under the task's name. A task has the same name in tasks/,
where it is trained and evaluated, and in configs/.
"""

import importlib
from types import ModuleType

# Task -> the part of the head by which a model that others trained is taken for one of this task ("": none is).
TASKS: dict[str, str] = {
    "classification": "sequence_classifier",
    "bio_mrc": "",
    "squad": "span",
    "tagging": "token_classifier",
}


def module_of(task: str) -> ModuleType:
    """The module of a task in this folder; JAX and the others load only when it is asked for."""
    return importlib.import_module(f"{__name__}.{task}")
