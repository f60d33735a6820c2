"""Answers flags of other tools (``--lr 3e-5``) with ours: `foreign_names.TABLE`, for the command at hand."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bert.errors import InputError
from launch.foreign_names import TABLE
from launch.foreign_values import OneOf, Ours
from launch.nearest import nearest

_HOMES = {name: (home, ours) for home, names in TABLE.items() for key, ours in names.items() for name in key.split()}


def normal(name: str) -> str:
    """The name as the table has it, of an option or setting as it was typed: ``-lr``, ``--config.optimizer.lr``."""
    return name.lstrip("-").rpartition(".")[2].replace("-", "_").lower()


def ours(name: str, settings: Collection[str], options: Collection[str]) -> Ours | None:
    """What stands for a name of the table in a command with these settings ("optimizer.b1") and options ("model").

    Where the command has nothing for it, its note says which command does. None: the table does not have the name.
    """
    if (key := normal(name)) not in _HOMES:
        return None
    home, candidates = _HOMES[key]
    here = {"", *settings, *(f"--{option}" for option in options)}
    offered = next((candidate for candidate in candidates if candidate.name in here), None)
    elsewhere = next((candidate for candidate in candidates if candidate.value), candidates[0])
    return offered or Ours("", f"it is {spelled(elsewhere.name)} of {home}", None)


def spelled(name: str) -> str:
    """A setting or an option as on the command line."""
    return name if name.startswith("--") else f"--config.{name}"


def refuse(argv: Sequence[str], settings: Mapping[str, Any], options: Collection[str]) -> None:
    """Raises InputError for the words of a command line that are flags of other tools: one line, with ours to paste.

    So are names of our settings without ``config.``: ``--batch_size=8`` is answered with ``--config.batch_size=8``.
    Beside such flags all others that the command does not have are named, too.

    Args:
      settings: dotted name -> usual value, which says what a value can be.
    """
    words, writes, notes, others = list[str](), list[str](), dict[str, list[str]](), list[str]()
    for name, value in _unknown(argv, settings, options):
        found = ours(name, settings, options) or _without_config(name, settings)
        if found is None:
            others.append(name)
            continue
        words.append(f"--{name}={value}" if value else f"--{name}")
        if found.value:
            writes.append(f"{spelled(found.name)}={converted(found, value, settings.get(found.name))}")
        if found.note:
            notes.setdefault(found.note, []).append(f"--{name}")
    if words:
        advice = ["write " + " ".join(writes)] if writes else []
        advice += [f"{', '.join(of)}: {note}" if len(words) > 1 else note for note, of in notes.items()]
        known = [*options, *(f"config.{name}" for name in settings)]
        advice += [f"--{name}: unknown{nearest(name, known, '--', '; leave it out')}" for name in others]
        words += [f"--{name}" for name in others]
        raise InputError(f"unknown option{'s' * (len(words) > 1)} {', '.join(words)}; {'; '.join(advice)}")


def _without_config(name: str, settings: Collection[str]) -> Ours | None:
    """The setting that is meant by ``batch_size``, or by ``weight-decay`` or ``optimizer.weight_decay``."""
    end = name.replace("-", "_").lower()
    full = [known for known in settings if f".{known}".endswith(f".{end}")]
    return Ours(full[0]) if len(full) == 1 and not name.startswith("config.") else None


def converted(found: Ours, value: str, usual: Any) -> str:
    """Their value as ours, for a shell; or what may stand there."""
    convert = found.value
    if convert and (given := convert(value)) is not None and _may_be(given, usual):
        return shlex.quote(given)
    choices = [choice for choice in dict.fromkeys(convert.values()) if choice] if isinstance(convert, OneOf) else []
    return "|".join(choices) if len(choices) > 1 else "VALUE"


def _may_be(value: str, usual: Any) -> bool:
    """Whether a setting of a number can have the value: it is no "steps", and no share where a count is wanted."""
    try:
        if type(usual) in (int, float):
            type(usual)(value)
    except ValueError:
        return False
    return True


def _unknown(argv: Sequence[str], settings: Collection[str], options: Collection[str]) -> Iterator[tuple[str, str]]:
    """(name, value) of the options that the command does not have; a value may also be the next word."""
    words = list(argv[1:])
    while words:
        word = words.pop(0)
        if word == "--":
            return
        if not word.startswith("-"):
            continue
        name, is_given, value = word.lstrip("-").partition("=")
        if not is_given and words and not words[0].startswith("-"):
            value = words.pop(0)
        setting = name.removeprefix("no").removeprefix("config.")  # --noconfig.x makes x False
        if name not in options and (setting == name or setting not in settings):
            yield name, value
