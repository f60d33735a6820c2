"""Command lines of all commands: ``--config=FILE --config.NAME=VALUE`` and a few named options.

A command is a function ``run(argv)`` that calls `parse`, and `main` runs it. A mistyped command line raises
`InputError` with one line; `main` prints it and exits with code 2.
"""

import pathlib
import re
import select
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from absl import flags as absl_flags
from ml_collections import ConfigDict, config_flags

import launch
from bert import config_fields, hub_names
from bert.errors import InputError, RunError, printable
from launch import config_files, console, foreign_flags
from launch.commands import CHECKOUT, as_typed
from launch.nearest import nearest
from tasks.files.records import comma_names

# Setting -> its spelling in the command that was parsed last, such as "text" -> "--config.text"; for messages.
_spellings: dict[str, str] = {}
# Text given to a setting or an option of that command -> the spelling, such as "bert-base-uncased" -> "--model".
_given: dict[str, str] = {}
_command: list[str] = []  # its words
_recipe: dict[str, Any] = {}  # dotted name -> value of the settings of its config file


class Options(dict[str, Any]):
    """The named options of a command, readable as attributes; None where an option is absent."""

    file = ""  # the config file

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"option --{name} is not declared; declared: {', '.join(self)}")
        return self[name]


def parse(
    argv: Sequence[str],
    doc: str,
    options: Mapping[str, str],
    required: Sequence[str] = (),
    *,
    config_file: str | None = "",
    arguments: str = "",
) -> tuple[ConfigDict, Options]:
    """(config, options) of a command line; prints the help and exits with 0 on ``--help``.

    Args:
      argv: the whole command line, program name first.
      doc: text of the command, shown by ``--help``.
      options: name -> one line of help, for each option.
      config_file: config used without ``--config`` ("configs/x.py" or "configs/x.py:size"); None makes ``--config``
        required; "" means that the command takes no config at all (an empty one is returned).
      arguments: one line of help on the words outside options, returned as ``options.arguments``; empty: none.

    Raises:
      InputError: an unknown setting or option (with the nearest name), a value of the wrong type, a missing
        option, a config file that cannot be read, or words that no option takes.
    """
    typed, file, recipe = list(argv), "", dict[str, Any]()
    argv = [_located(word) for word in _joined(argv)]
    config_file = config_files.located(config_file) if config_file else config_file
    if any(word in ("--help", "-help", "-h") for word in argv[1:]):
        print(_help(doc, argv, config_file, options, required, arguments))
        sys.exit(0)
    config_files.check(argv, config_file)
    values, config = cast(Any, absl_flags.FlagValues)(), ConfigDict()
    for name, text in options.items():
        absl_flags.DEFINE_string(name, None, text, flag_values=values)
    try:
        if config_file != "":
            config = config_files.settings_of(argv, config_file)
            recipe = config_fields.flatten(config)
            files = [word.split("=", 1)[1] for word in argv if config_files.names_file(word)]
            file = [str(config_file), *files][-1]
            argv = [word for word in argv if not config_files.names_file(word)]
        foreign_flags.refuse(argv, config_fields.flatten(config), options)
        if config_file != "":
            _check_settings(argv, config)
            config_flags.DEFINE_config_dict("config", config, flag_values=values, sys_argv=argv)
        rest = values(argv)[1:]
    except absl_flags.UnrecognizedFlagError as error:
        known = [*options, "help", *(["config"] if config_file != "" else [])]
        raise InputError(f"unknown option --{error.flagname}{nearest(error.flagname, known, '--')}") from None
    except absl_flags.Error as error:
        raise InputError(config_files.in_one_line(str(error))) from None
    if rest and not arguments:
        raise InputError(f"{rest[0]!r} belongs to no option; write --NAME=VALUE, see --help")
    chosen = Options({name: values[name].value for name in options}, arguments=rest)
    chosen.file = file
    for name in required:
        if not chosen[name]:
            raise InputError(f"--{name} is missing ({options[name]}); see --help")
    _command[:] = typed
    _recipe.clear()
    _recipe.update(recipe)
    _spellings.clear()
    _spellings.update({name: f"--{name}" for name in options})
    settings = config_fields.flatten(config)
    _spellings.update({name: f"--config.{name}" for name in settings})
    _given.clear()
    for name, value in (*settings.items(), *((name, chosen[name]) for name in options)):
        if isinstance(value, str) and value:
            _given[hub_names.shown(pathlib.Path(value))] = _spellings[name]
    return config, chosen


def command() -> list[str]:
    """The words of the command that was parsed last, such as "bert", "pretrain", "--config=..."."""
    name = pathlib.Path(_command[0].rpartition(" ")[2]).stem.replace("_", "-")
    return [*as_typed(f"bert {name}").split(" "), *_command[1:]]


def changed(config: ConfigDict) -> dict[str, Any]:
    """Dotted name -> value of the settings that differ from the config file of the command that was parsed last."""
    return {name: value for name, value in config_fields.flatten(config).items() if _recipe.get(name) != value}


def spell(setting: str, option: str) -> None:
    """Has messages call a setting as the option that sets it, where the two have different names."""
    _spellings[setting] = option


def as_options(message: str) -> str:
    """A message of the library with settings spelled as on the command line: "set text to a column" becomes "set
    --config.text to a column", or --text where that is an option; "pass DIR" becomes "pass --model=DIR"."""
    if not _spellings:
        return message
    if option := _given.get(message.partition(": ")[0]):
        message = message.replace("then pass DIR", f"then pass {option}=DIR")
    names = "|".join(re.escape(name) for name in sorted(_spellings, key=len, reverse=True))
    verb, also, value = r"\b(?:set|raise|lower|leave)", r"(?:,|\bor|\band)", r"(?= to | empty\b)"
    advice = rf"({verb} )({names})\b|({also} )({names}){value}"
    return re.sub(advice, lambda match: (match[1] or match[3]) + _spellings[match[2] or match[4]], message)


def check_fields(config: ConfigDict, like: str) -> None:
    """Raises InputError where a config does not have exactly the settings of the file ``like`` (path in the checkout).

    Then its file is of another command, or a copy of an older one, or misspells a name. The settings of a model that
    names its ``model_type`` are not compared.
    """
    known, names = list(defaults(like)), list(config_fields.flatten(config))
    if "model.model_type" in names:
        known, names = ([name for name in part if not name.startswith("model.")] for part in (known, names))
    for name in names:
        if name not in known:
            near = nearest(name, known, prefix="config.", otherwise="; remove it, or start from that file")
            raise InputError(f"the config file sets config.{name}, which {like} does not have{near}")
    if lacking := [name for name in known if name not in names]:
        raise InputError(
            f"the config file lacks config.{lacking[0]}, which {like} has; add it, or start from that file"
        )


def defaults(config_file: str) -> dict[str, Any]:
    """Dotted name -> value of every setting of a config file (path in the checkout)."""
    path = CHECKOUT / config_file
    return config_fields.flatten(config_files.settings_of(["", f"--config={path}"], None))


def whole_number(options: Options, name: str, default: int, *, least: int = 1) -> int:
    """The value of an option that must be a whole number of at least ``least``."""
    value = options[name]
    if value is not None and (not value.isdecimal() or int(value) < least):
        raise InputError(f"--{name}={value}: must be a whole number of at least {least}")
    return default if value is None else int(value)


def yes_or_no(options: Options, name: str) -> bool:
    """Whether an option is "yes"."""
    value = options[name]
    if value not in (None, "yes", "no"):
        raise InputError(f"--{name}={value}: must be yes or no")
    return bool(value == "yes")


def yes_no_or_unset(options: Options, name: str) -> bool | None:
    """Whether an option is "yes"; None where it is not given."""
    return None if options[name] is None else yes_or_no(options, name)


def names(options: Options, name: str) -> tuple[str, ...] | None:
    """The names in an option, with commas between them; None where it is not given."""
    return None if options[name] is None else comma_names(options[name])


def _joined(words: Sequence[str]) -> list[str]:
    """The words with ``--config.NAME VALUE`` joined to ``--config.NAME=VALUE``, as a true/false setting needs it."""
    joined: list[str] = []
    for word in words:
        if joined and not word.startswith("--") and re.fullmatch(r"--?config(\.[\w.]+)?", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _located(word: str) -> str:
    """``--config=NAME`` with the path of that file."""
    option, _, path = word.partition("=")
    return f"{option}={config_files.located(path)}" if config_files.names_file(word) else word


def _check_settings(argv: Sequence[str], config: ConfigDict) -> None:
    """Refuses settings of the command line that the config does not have, whole sections, and missing values."""
    known = list(config_fields.flatten(config))
    sections = {name.rsplit(".", depth)[0] for name in known for depth in range(1, name.count(".") + 1)}
    for name, value in _overrides(argv):
        if name in sections:  # it would drop every default of the section without a word
            raise InputError(f"config.{name} is a section; set its fields one by one: --config.{name}.FIELD=VALUE")
        if name not in known:
            raise InputError(f"unknown setting config.{name}{nearest(name, known, prefix='config.')}")
        section, _, field = name.rpartition(".")
        if value is None and (config[section] if section else config).get_type(field) is not bool:
            spelling = f"--config.{name}"
            raise InputError(f"{spelling} has no value, and it is no true/false setting; write {spelling}=VALUE")


def overridden(argv: Sequence[str]) -> set[str]:
    """Names of the settings that a command line sets itself, such as "optimizer.name"."""
    return {name for name, _ in _overrides(_joined(argv))}


def keep_one(argv: Sequence[str], config: ConfigDict, name: str, usual: str) -> None:
    """Of two settings that decide the same thing, takes the value of one away: a setting of the command line counts
    before one of the file, and ``name``, where it is set, before ``usual``. Raises InputError where the command line
    sets both."""
    overrides = {name, usual} & overridden(argv)
    if len(overrides) == 2:
        raise InputError(
            f"config.{name} and config.{usual} are both given, and decide the same thing; give one of them"
        )
    section, _, field = (name if usual in overrides or config[name] is None else usual).rpartition(".")
    (config[section] if section else config)[field] = None


def _overrides(argv: Sequence[str]) -> list[tuple[str, str | None]]:
    """(name, value) of each setting of a command line; None where a word has no value."""
    matches = (re.match(r"--?(?:no)?config\.([^=]*)(?:=(.*))?$", word, re.DOTALL) for word in argv[1:])
    return [(match[1], match[2]) for match in matches if match]


def show(config: ConfigDict, options: Options, all_in: object = "") -> None:
    """Prints what differs from the config file, and the options, as a command line takes them.

    ``all_in``: the file that has every setting.
    """
    given = {f"config.{name}": value for name, value in changed(config).items()} | options
    words = [f"--{name}={value}" for name, value in given.items() if name != "arguments" and value is not None]
    words = [shlex.quote(word) for word in [f"--config={options.file}"] * bool(options.file) + words]
    if all_in:
        print(printable(f"settings that differ from {options.file} (all are in {all_in}):"))
    print(" \\\n".join(f"  {printable(word)}" for word in words), flush=True)


def _help(
    doc: str, argv: list[str], config_file: str | None, options: Mapping[str, str], required: Sequence[str], words: str
) -> str:
    path, entries = config_files.path_of(argv, config_file), dict[str, str]()
    if path != "":
        entries["--config=FILE"] = f"file with the settings (now: {path or 'must be named'})"
        entries["--config.NAME=VALUE"] = "changes one of them"
    entries |= {f"--{name}=TEXT": text + " (required)" * (name in required) for name, text in options.items()}
    if words:
        entries["WORDS"] = words
    width = max(len(name) for name in [*options, "config.NAME"]) + 10
    lines = [doc.strip(), "", "Options:", *(f"  {entry:<{width}}{text}" for entry, text in entries.items())]
    lines += config_files.help_on(argv, config_file)
    if path is None:
        lines += ["", "With --config=FILE this help lists the settings of that file."]
    return as_typed("\n".join(lines))


def _has_no_reader(output: int) -> bool:
    """Whether an open file is a pipe that nobody reads any more; where the system cannot tell, as Windows, yes."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(output, select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def main(run: Callable[[list[str]], object]) -> None:
    """Runs a command and ends the process.

    Exit codes: 0 done, 1 a run that cannot continue, 2 bad input (both with one ``error:`` line), 130 Ctrl-C; 1 without
    a line where the reader of the output, such as head, has ended.
    """
    console.plain_output()
    console.plain_logging()
    try:
        run(sys.argv)
        sys.stdout.flush()
        sys.exit(0)
    except BrokenPipeError:
        if not _has_no_reader(sys.stdout.fileno()):
            raise
        launch.end_without_reader()
    except InputError as error:
        message, code = as_options(str(error)), 2
    except RunError as error:
        message, code = str(error), 1
    except KeyboardInterrupt:
        message, code = "stopped by the keyboard", 130
    print(f"error: {as_typed(printable(message))}", file=sys.stderr)
    sys.exit(code)
