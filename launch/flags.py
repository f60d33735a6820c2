"""Command lines of all commands: ``--config=FILE --config.NAME=VALUE`` and a few named options.

A command is a function ``run(argv)`` that calls `parse`, and `main` runs it. A mistyped command line raises
`InputError` with one line; `main` prints it and exits with code 2.
"""

import re
import select
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from absl import flags as absl_flags
from ml_collections import ConfigDict, config_flags

import launch
from bert import config_fields
from bert.errors import InputError, RunError, printable
from launch import command_help, command_line, config_files, console, foreign_flags, peers
from launch.commands import CHECKOUT, as_typed
from launch.nearest import nearest
from launch.options import Options


def parse(
    argv: Sequence[str],
    doc: str,
    options: Mapping[str, str],
    required: Sequence[str] = (),
    *,
    config_file: str | None = "",
    arguments: str = "",
    switches: Collection[str] = (),
) -> tuple[ConfigDict, Options]:
    """(config, options) of a command line; prints the help and exits with 0 on ``--help``.

    Args:
      argv: the whole command line, program name first.
      doc: text of the command, shown by ``--help``.
      options: name -> one line of help, for each option.
      config_file: config used without ``--config`` ("configs/x.py" or "configs/x.py:size"); None makes ``--config``
        required; "" means that the command takes no config at all (an empty one is returned).
      switches: options without a value; "yes" where they are given.
      arguments: one line of help on the words outside options, returned as ``options.arguments``; empty: none.

    Raises:
      InputError: an unknown setting or option (with the nearest name), a value of the wrong type, a missing
        option, a config file that cannot be read, or words that no option takes.
    """
    typed, file, recipe = list(argv), "", dict[str, Any]()
    argv = [f"{word}=yes" if word in {f"--{name}" for name in switches} else _located(word) for word in _joined(argv)]
    config_file = config_files.located(config_file) if config_file else config_file
    if any(word in ("--help", "-help", "-h") for word in argv[1:]):
        print(command_help.text(doc, argv, config_file, options, required, arguments))
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
    for name in required:
        if not chosen[name]:
            raise InputError(f"--{name} is missing ({options[name]}); see --help")
    command_line.remember(typed, file, recipe, config, chosen)
    return config, chosen


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
        message, code = command_line.as_options(str(error)), 2
    except RunError as error:
        peers.wait_for_abort(error.__cause__)
        message, code = str(error), 1
    except KeyboardInterrupt:
        message, code = "stopped by the keyboard", 130
    except Exception as error:
        peers.leave(1, error)
        raise
    print(f"error: {as_typed(printable(message))}", file=sys.stderr)
    peers.leave(code)
    sys.exit(code)
