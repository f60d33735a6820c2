"""Tables of other tools' flags with our settings, from the table that the commands answer with."""

import importlib
import re

from docs.site.reference import escaped, table
from launch import flags, foreign_flags
from launch.commands import module_of
from launch.foreign_tools import TOOLS
from launch.foreign_values import Ours

MARK = re.compile(r"<!-- flags: (.*?) -->")
# The commands that do what a tool does: (command, its file of settings or "").
COMMANDS: dict[str, tuple[tuple[str, str], ...]] = {
    "TrainingArguments": (("finetune", "table"), ("pretrain", "pretrain"), ("predict", "")),
    "run_mlm_flax": (("pretrain", "pretrain"), ("prepare", "prepare")),
    "run_glue": (("finetune", "table"), ("predict", "")),
    "run_qa": (("finetune", "squad"), ("predict", "")),
    "run_ner": (("finetune", "tagging"), ("predict", "")),
    "SentenceTransformerTrainer": (("embed", ""), ("finetune", "table")),
    "Google run_pretraining": (("pretrain", "pretrain"), ("prepare", "prepare")),
    "Google run_classifier and run_squad": (("finetune", "squad"), ("finetune", "glue"), ("predict", "")),
    "NVIDIA BERT": (("pretrain", "pretrain"), ("prepare", "prepare")),
    "fairseq": (("pretrain", "pretrain"), ("prepare", "prepare")),
}


def with_tables(page: str) -> str:
    """The page with a table of flags in the place of each mark."""
    return MARK.sub(lambda match: flags_of(match[1]), page)


def flags_of(tool: str) -> str:
    """A row for each flag of a tool: theirs, ours with the command that has it, what else is to be said."""
    rows = []
    for name in TOOLS[tool]:
        command, ours = _answer(tool, name)
        setting = f"`{foreign_flags.spelled(ours.name)}`" if ours.value else ""
        of = f" of `bert {command}`" if setting and command != COMMANDS[tool][0][0] else ""
        rows.append((f"`{name}`", setting + of, escaped(ours.note)))
    return table(("theirs", "ours", ""), rows)


def _answer(tool: str, name: str) -> tuple[str, Ours]:
    """The first of the tool's commands that has a setting for a flag; without any, what the first one says of it."""
    answers = []
    for command, config in COMMANDS[tool]:
        settings = list(flags.defaults(f"configs/{config}.py")) if config else []
        options = importlib.import_module(module_of(command)).OPTIONS
        if ours := foreign_flags.ours(name, settings, options):
            answers.append((command, ours))
    return next((answer for answer in answers if answer[1].value), answers[0])
