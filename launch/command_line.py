"""The command line that was parsed last: its words, what it changes, and how messages spell its settings."""

import pathlib
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from bert import config_fields, hub_names
from bert.errors import printable
from launch.commands import as_typed
from launch.options import Options


class _CommandLine(NamedTuple):
    words: Sequence[str] = ()  # program name first
    config_file: str = ""
    recipe: Mapping[str, Any] = {}  # dotted name -> value of the settings of the config file
    spellings: Mapping[str, str] = {}  # setting -> its spelling, such as "text" -> "--config.text"
    given: Mapping[str, str] = {}  # a text that was given -> the spelling, such as "bert-base-uncased" -> "--model"


_last = _CommandLine()


def remember(
    words: Sequence[str], config_file: str, recipe: Mapping[str, Any], config: ConfigDict, options: Options
) -> None:
    """Makes this the command line that the other functions are about.

    Args:
      words: as typed, program name first.
      config_file: as messages name it; "" for none.
      recipe: dotted name -> value of the settings of that file.
      config: the settings, with the changes of the command line.
      options: the named options.
    """
    global _last
    settings = config_fields.flatten(config)
    named = {name: value for name, value in options.items() if name != "arguments"}
    spellings = {name: f"--{name}" for name in named} | {name: f"--config.{name}" for name in settings}
    texts = {value: spellings[name] for name, value in settings.items() if isinstance(value, str) and value}
    texts |= {value: f"--{name}" for name, value in named.items() if value}
    given = {hub_names.shown(pathlib.Path(text)): spelling for text, spelling in texts.items()}
    _last = _CommandLine(words, config_file, recipe, spellings, given)


def words() -> list[str]:
    """The words of the command, such as "bert", "pretrain", "--config=..."."""
    name = pathlib.Path(_last.words[0].rpartition(" ")[2]).stem.replace("_", "-")
    return [*as_typed(f"bert {name}").split(" "), *_last.words[1:]]


def changed(config: ConfigDict) -> dict[str, Any]:
    """Dotted name -> value of the settings that differ from the config file of the command."""
    return {name: value for name, value in config_fields.flatten(config).items() if _last.recipe.get(name) != value}


def spell(setting: str, option: str) -> None:
    """Has messages call a setting as the option that sets it, where the two have different names."""
    global _last
    _last = _last._replace(spellings={**_last.spellings, setting: option})


def as_options(message: str) -> str:
    """A message of the library with settings spelled as on the command line: "set text to a column" becomes "set
    --config.text to a column", or --text where that is an option; "pass DIR" becomes "pass --model=DIR"."""
    spellings = _last.spellings
    if not spellings:
        return message
    if option := _last.given.get(message.partition(": ")[0]):
        message = message.replace("then pass DIR", f"then pass {option}=DIR")
    names = "|".join(re.escape(name) for name in sorted(spellings, key=len, reverse=True))
    verb, also, value = r"\b(?:set|raise|lower|leave(?! out))", r"(?:,|\bor|\band)", r"(?= to | empty\b)"
    advice = rf"({verb} )({names})\b|({also} )({names}){value}"
    return re.sub(advice, lambda match: (match[1] or match[3]) + spellings[match[2] or match[4]], message)


def show(config: ConfigDict, options: Options, all_in: object = "") -> None:
    """Prints what differs from the config file, and the options, as a command line takes them.

    ``all_in``: the file that has every setting.
    """
    file = _last.config_file
    given = {f"config.{name}": value for name, value in changed(config).items()} | options
    words = [f"--{name}={value}" for name, value in given.items() if name != "arguments" and value is not None]
    words = [shlex.quote(word) for word in [f"--config={file}"] * bool(file) + words]
    if all_in:
        print(printable(f"settings that differ from {file} (all are in {all_in}):"))
    print(" \\\n".join(f"  {printable(word)}" for word in words), flush=True)
