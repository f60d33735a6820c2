"""The commands of the program `bert`, a line each; a command is the file in launch/ of its name."""

import pathlib
import re
import sys
from typing import NamedTuple

CHECKOUT = pathlib.Path(__file__).resolve().parents[1]  # in the wheel: the folder that holds launch/ and tasks/ only


class Command(NamedTuple):
    help: str  # one line
    config: str = ""  # usual file of settings of a command that needs one; these are in the checkout, not in the wheel

    @property
    def needs_checkout(self) -> bool:
        return bool(self.config)


COMMANDS = {
    "prepare": Command("turns text into a vocabulary and token ids on disk", "configs/prepare.py"),
    "pretrain": Command("trains a model on prepared text", "configs/pretrain.py"),
    "finetune": Command("trains a model on labelled examples", "configs/table.py"),
    "local-processes": Command("trains with several processes on the CPU of this machine"),
    "evaluate": Command("computes all scores of a fine-tuned model on a file"),
    "predict": Command("writes a fine-tuned model's prediction for each row of a file"),
    "fill-mask": Command("prints the most probable words for each [MASK] of a text"),
    "generate": Command("continues a text with a causal model"),
    "score": Command("computes loss, perplexity and accuracy of a pretrained model on text"),
    "report": Command("shows what runs did, as an HTML file or as text"),
    "embed": Command("writes a vector for each text of a file"),
    "export": Command("converts a model to a Hugging Face directory, StableHLO or ONNX"),
    "push": Command("uploads a model to the Hugging Face Hub"),
    "completion": Command("prints a script with which bash, zsh or fish completes commands and options"),
}


def module_of(name: str) -> str:
    """The module of a command: "launch.fill_mask" of "fill-mask"."""
    return f"launch.{name.replace('-', '_')}"


def as_typed(text: str) -> str:
    """A text that names commands like ``bert predict``, in the form that started this process.

    `launch.program` leaves it in ``sys.argv[0]``: "bert predict" or "python -m bert predict"; else the form is
    ``python -m launch.predict``.
    """
    program, _, name = sys.argv[0].rpartition(" ")
    started_by_program = name in COMMANDS and bool(program)

    def typed(match: re.Match[str]) -> str:
        return f"{program} {match[1]}" if started_by_program else f"python -m {module_of(match[1])}"

    return re.sub(rf"(?<![\w./-])bert ({'|'.join(COMMANDS)})\b", typed, text)
