"""What ``--help`` prints: the description of a command, its options, and the settings of its config file."""

import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from launch import config_files
from launch.commands import as_typed

_NARROWEST, _LEFT = 60, 32  # columns: of the whole text at least, of options and settings


def text(
    doc: str,
    argv: Sequence[str],
    config_file: str | None,
    options: Mapping[str, str],
    required: Sequence[str],
    arguments: str,
) -> str:
    """The help of a command, as wide as the terminal; the arguments are those of `flags.parse`."""
    path, entries = config_files.path_of(argv, config_file), dict[str, str]()
    if path != "":
        entries["--config=FILE"] = f"file with the settings (now: {path or 'must be named'})"
        entries["--config.NAME=VALUE"] = "changes one of them"
    entries |= {f"--{name}=TEXT": text + " (required)" * (name in required) for name, text in options.items()}
    if arguments:
        entries["WORDS"] = arguments
    parts = [doc.strip(), _section("Options", entries.items())]
    for place, settings in config_files.described(argv, config_file).items():
        parts.append(_section(f"Settings in {place}", ((_shown(setting), setting.comment) for setting in settings)))
    if path is None:
        parts.append("With --config=FILE this help lists the settings of that file.")
    return as_typed("\n\n".join(parts))


def _shown(setting: config_files.Setting) -> str:
    return f"--config.{setting.name}" + (" (not set)" if setting.value is None else f"={setting.value}")


def _section(title: str, entries: Iterable[tuple[str, str]]) -> str:
    """A title, and below it each entry with its explanation beside it, on a line of its own where it is long."""
    width = max(shutil.get_terminal_size((120, 24)).columns, _NARROWEST)
    lines, indent = [f"{title}:"], " " * _LEFT
    for entry, explanation in entries:
        beside = len(entry) + 4 <= _LEFT
        lines += [] if beside else [f"  {entry}"]
        first = f"  {entry}".ljust(_LEFT) if beside else indent
        lines += textwrap.wrap(explanation, width, initial_indent=first, subsequent_indent=indent)
        lines += [f"  {entry}"] if beside and not explanation else []
    return "\n".join(lines)
