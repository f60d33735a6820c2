"""The reference pages of the site, made from the commands, the files of settings and the docstrings themselves."""

import importlib
import pathlib
import re
import textwrap
from collections.abc import Iterable, Iterator

import bert
from launch import config_files
from launch.commands import COMMANDS, module_of

CHECKOUT = pathlib.Path(__file__).parents[2]
CONFIGS = ("prepare", "pretrain", "table", "glue", "bio_mrc", "squad", "tagging", "digits")
# Behind the names of `bert` itself: modules that people build with.
MODULES = (
    "bert.inference",
    "bert.query_key",
    "bert.model.heads",
    "bert.model.losses",
    "bert.training.train",
    "bert.training.task",
    "bert.training.step",
    "bert.training.optim",
    "bert.architectures",
    "bert.architectures.bert",
    "bert.data.batches",
)


def pages() -> dict[str, str]:
    """Name of a page -> its Markdown."""
    return {"commands.md": commands(), "settings.md": settings(), "python.md": python()}


def commands() -> str:
    """Each command with its description and its options."""
    parts = ["# Commands", "Every command also takes `--help`."]
    for name in COMMANDS:
        module = importlib.import_module(module_of(name))
        parts += [f"## bert {name}", described(module)]
        rows = ((f"`--{option}`", escaped(text)) for option, text in module.OPTIONS.items())
        parts.append(table(("option", ""), rows))
    return "\n\n".join(parts) + "\n"


def settings() -> str:
    """Each file of settings with its values and comments, by the place that declares them."""
    parts = ["# Settings", "What `--config=FILE` names, and each `--config.NAME=VALUE` with its value in that file."]
    for name in CONFIGS:
        path = CHECKOUT / "configs" / f"{name}.py"
        module = importlib.import_module(f"configs.{name}")
        parts += [f"## configs/{name}.py", described(module)]
        for place, rows in settings_of(path):
            parts += [f"**{escaped(place)}**", table(("setting", "value", ""), rows)]
    return "\n\n".join(parts) + "\n"


def settings_of(path: pathlib.Path) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """(place that declares settings, (name, value, comment) of each), as ``--help`` shows them."""
    for place, described in config_files.described(["", f"--config={path}"], None).items():
        rows = [
            (f"`{name}`", "" if value is None else f"`{value!r}`", escaped(text)) for name, value, text in described
        ]
        yield place.replace(f"{CHECKOUT}/", ""), rows


def python() -> str:
    """The public names of the library, and the modules behind them, from their docstrings."""
    names = ", ".join(f"`{name}`" for name in bert.__all__)
    parts = ["# Python", f"`bert` itself has {names}. Only these are the public interface."]
    return "\n\n".join([*parts, *(f"::: {module}" for module in MODULES)]) + "\n"


def described(module: object) -> str:
    """The docstring of a module: its commands in blocks, the rest as prose."""
    parts = []
    for paragraph in (module.__doc__ or "").strip().split("\n\n"):
        text = textwrap.dedent(paragraph)
        is_code = text != paragraph or text.startswith(("python -m ", "bert "))
        parts.append(f"```text\n{text}\n```" if is_code else text)
    return "\n\n".join(parts)


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [titles, ["---" for _ in titles], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """Plain text in Markdown, also in a cell of a table; what stands between backticks stays code."""
    parts = re.split(r"(`[^`]+`)", text)
    marks = re.compile(r"([\\`*_{}\[\]<>|~])")
    return "".join(part.replace("|", r"\|") if i % 2 else marks.sub(r"\\\1", part) for i, part in enumerate(parts))
