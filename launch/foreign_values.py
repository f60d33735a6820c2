"""What stands for a setting of another tool: ours, its value, and a note. foreign_names.py has the table."""

from collections.abc import Callable
from typing import NamedTuple

Convert = Callable[[str], str | None]  # a value of theirs -> ours; None: there is none, or it is not known


def same(value: str) -> str | None:
    return value or None


def whole_number(value: str) -> str | None:
    """Of counts; 0 and -1 are other tools' way to say that there is none."""
    return value if value.isdecimal() and int(value) else None


def other(value: str) -> None:
    """Of settings that count in another unit, so that the user computes the value."""


class OneOf(dict[str, str]):
    """By a table from theirs to ours; an option without a value is true."""

    def __call__(self, value: str) -> str | None:
        return self.get({"": "true", "1": "true", "0": "false"}.get(value, value).lower().replace("-", "_"))


class Ours(NamedTuple):
    """What stands for a foreign name in a command that has ``name``: a setting, or an option such as "--model"; "" is
    in each command. Without ``value`` it is not to be given, and ``note`` says what to do instead."""

    name: str
    note: str = ""
    value: Convert | None = same


def none(note: str, of: str = "") -> Ours:
    return Ours(of, note, None)


SWITCH = OneOf(true="True", false="False")
YES_NO = OneOf(true="yes", false="no")
# What other tools name, and training here never needs.
NOT_NEEDED = none("it is not needed here; leave it out")
ABSENT = none("there is nothing like it here; leave it out")
HAS_SIZES = none("sizes come with the weights, from the config.json or bert_config.json beside them")
IN_PRETRAINING, IN_PREPARING = "examples.objective", "corpus"  # settings that no other command has
# Commands, as the table names them.
TRAINING, FINETUNING, PRETRAINING = "bert pretrain and bert finetune", "bert finetune", "bert pretrain"
SQUAD, TEXT = "bert finetune with configs/squad.py", "bert prepare"
