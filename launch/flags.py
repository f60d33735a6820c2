"""Command lines of all launchers: ``--config=FILE --config.NAME=VALUE`` plus a few named options.

A launcher reads:

    def run(argv: list[str]) -> None:
        config, options = flags.parse(argv, doc=__doc__, config_file="configs/prepare.py",
                                      options={"out": "folder to write"}, required=("out",))
        flags.show(config, options)
        ...

    if __name__ == "__main__":
        flags.main(run)

What a person mistypes raises `InputError` with one line; `main` prints it and exits with code 2.
"""

import contextlib
import difflib
import os
import pathlib
import re
import select
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence

from absl import flags as absl_flags
from ml_collections import ConfigDict, config_flags

from bert.errors import InputError, RunError, printable
from launch import console

# What Python says of a value of the wrong type -> the rule.
_RULES = {
    r"invalid literal for int\(\) with base 10: .*": "must be a whole number, in digits",
    r"could not convert string to float: .*": "must be a number",
    r"\('Non-boolean argument to boolean flag', .*\)": "must be True or False",
}


# Setting -> how the command that was parsed last spells it, such as "text" -> "--config.text"; for its messages.
_spelled: dict[str, str] = {}


class Options(dict):
    """The named options of a command, readable as attributes; None where an option was not given."""

    def __getattr__(self, name: str):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"option --{name} is not declared; declared: {', '.join(self)}") from None


def parse(
    argv: Sequence[str],
    *,
    doc: str,
    config_file: str | None,
    options: Mapping[str, str],
    required: Sequence[str] = (),
    arguments: str = "",
) -> tuple[ConfigDict, Options]:
    """(config, options) of a command line; prints the help and exits with 0 on ``--help``.

    Args:
      argv: the whole command line, program name first.
      doc: text of the launcher, shown by ``--help``.
      config_file: config used without ``--config`` ("configs/x.py" or "configs/x.py:size"); None makes ``--config``
        required; "" means that the command takes no config at all (an empty one is returned).
      options: name -> one line of help, for every option that takes a text.
      required: names of options that must be given.
      arguments: what the words outside options are, for the help; they are returned as ``options.arguments``.
        Empty means that there must be none.

    Raises:
      InputError: an unknown setting or option (with the nearest name), a value of the wrong type, a missing
        option, a config file that cannot be read, or words that no option takes.
    """
    argv = [argv[0], *_config_first(argv[1:])]
    if any(word in ("--help", "-help", "-h") for word in argv[1:]):
        print(_help(doc, _config_path(argv, config_file), options, required, arguments))
        sys.exit(0)
    _check_config_file(argv, config_file)
    values, rest = _read(argv, config_file, options)
    chosen = Options({name: values[name].value for name in options}, arguments=rest)
    if rest and not arguments:
        raise InputError(f"{rest[0]!r} belongs to no option; write --NAME=VALUE, see --help")
    for name in required:
        if not chosen[name]:
            raise InputError(f"--{name} is missing ({options[name]}); see --help")
    config = values["config"].value if config_file != "" else ConfigDict()
    _spelled.clear()
    _spelled.update({name: f"--{name}" for name in options} | {name: f"--config.{name}" for name in flatten(config)})
    return config, chosen


def as_options(message: str) -> str:
    """A message of the library, its advice on settings in the words of the command line.

    "set text to a column" becomes "set --config.text to a column", or --text where that is an option.
    """
    if not _spelled:
        return message
    names = "|".join(re.escape(name) for name in sorted(_spelled, key=len, reverse=True))
    verb, also, value = r"\b(?:set|raise|lower|leave)", r"(?:,|\bor|\band)", r"(?= to | empty\b)"
    advice = rf"({verb} )({names})\b|({also} )({names}){value}"
    return re.sub(advice, lambda match: (match[1] or match[3]) + _spelled[match[2] or match[4]], message)


def check_fields(config: ConfigDict, like: str) -> None:
    """Checks that a config file has the settings of the file ``like``, and no others, which nothing would read.

    Args:
      like: path from the checkout, such as "configs/pretrain.py".

    Raises:
      InputError: it is the file of another command, a copy of an older one, or misspells a name.
    """
    path = pathlib.Path(__file__).parents[1] / like
    known, names = (list(flatten(one)) for one in (_settings_of_files(["", f"--config={path}"], None), config))
    for name in names:
        if name not in known:
            near = _nearest(name, known, prefix="config.", otherwise="; remove it, or start from that file")
            raise InputError(f"the config file sets config.{name}, which {like} does not have{near}")
    lacking = [name for name in known if name not in names]
    if lacking:
        raise InputError(
            f"the config file lacks config.{lacking[0]}, which {like} has; add it, or start from that file"
        )


def whole_number(options: Options, name: str, default: int) -> int:
    """The value of an option that is a whole number of at least 1.

    Raises:
      InputError: it is something else.
    """
    value = options[name]
    if value is None:
        return default
    if not value.isdecimal() or int(value) < 1:
        raise InputError(f"--{name}={value}: must be a whole number of at least 1")
    return int(value)


def yes_or_no(options: Options, name: str) -> bool:
    """Whether an option is "yes"; no where it was not given.

    Raises:
      InputError: it is neither yes nor no.
    """
    value = options[name]
    if value not in (None, "yes", "no"):
        raise InputError(f"--{name}={value}: must be yes or no")
    return value == "yes"


def _config_first(words: Sequence[str]) -> list[str]:
    """The words with ``--config=FILE`` moved to the front: settings may then stand before it, too.

    ``--config.NAME VALUE`` is joined to ``--config.NAME=VALUE``, so a true/false setting takes this form as well.
    """
    first, rest, i = [], [], 0
    while i < len(words):
        word, following = words[i], words[i + 1] if i + 1 < len(words) else "--"
        bare = re.fullmatch(r"--?config(\.[\w.]+)?", word) is not None
        if bare and not following.startswith("--"):
            word, i = f"{word}={following}", i + 1
        (first if re.match(r"--?config=", word) else rest).append(word)
        i += 1
    return first + rest


def _config_path(argv: Sequence[str], default: str | None) -> str | None:
    """FILE of the last ``--config=FILE``, without its ``:argument``; else the default's."""
    named = [word.split("=", 1)[1] for word in argv[1:] if re.match(r"--?config=", word)]
    path = named[-1] if named else default
    return path.split(":", 1)[0] if path else path


def _check_config_file(argv: Sequence[str], default: str | None) -> None:
    path = _config_path(argv, default)
    if path is None or any(re.fullmatch(r"--?config(=(:.*)?)?", word) for word in argv[1:]):
        raise InputError("--config=FILE is missing: name a file such as configs/quickstart.py; see --help")
    if path and not pathlib.Path(path).is_file():
        near = sorted(str(p) for p in pathlib.Path(path).parent.glob("*.py")) or ["no .py file in that folder"]
        raise InputError(f"--config={path}: no such file; there are: {', '.join(near)}")


@contextlib.contextmanager
def _quiet_loader():
    """ml_collections loads config files by a function that newer Pythons warn of."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the load_module", DeprecationWarning)
        yield


def _read(argv: list[str], config_file: str | None, options: Mapping[str, str]):
    """(flag values, leftover words); every complaint of absl and ml_collections becomes one of our messages."""
    if config_file != "":
        _check_settings(argv, _settings_of_files(argv, config_file))
    values = absl_flags.FlagValues()
    for name, text in options.items():
        absl_flags.DEFINE_string(name, None, text, flag_values=values)
    try:
        with _quiet_loader():
            if config_file != "":  # a default file is read, and the overrides with it, in this very call
                config_flags.DEFINE_config_file(
                    "config", config_file, flag_values=values, lock_config=True, sys_argv=argv
                )
            rest = values(argv)[1:]
    except absl_flags.UnrecognizedFlagError as error:
        known = [*options, "help", *(["config"] if config_file != "" else [])]
        raise InputError(f"unknown option --{error.flagname}{_nearest(error.flagname, known, '--')}") from None
    except absl_flags.Error as error:
        raise InputError(_in_one_line(str(error))) from None
    return values, rest


def _settings_of_files(argv: Sequence[str], config_file: str | None) -> ConfigDict:
    """The settings as the config file has them, without those of the command line."""
    only_files = [argv[0], *(word for word in argv[1:] if re.match(r"--?config=", word))]
    values = absl_flags.FlagValues()
    try:
        with _quiet_loader():
            config_flags.DEFINE_config_file("config", config_file, flag_values=values, sys_argv=only_files)
            values(only_files)
    except absl_flags.Error as error:
        raise InputError(_in_one_line(str(error))) from None
    except Exception as error:  # whatever the code of another file raises
        raise InputError(
            f"--config={_config_path(argv, config_file)}: not a Python file with settings "
            f"({type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else 'no message'}); "
            "copy one of configs/ and change that"
        ) from None
    return values["config"].value


def _check_settings(argv: Sequence[str], config: ConfigDict) -> None:
    """Refuses settings of the command line that the config does not have, whole sections, and missing values."""
    known = list(flatten(config))
    sections = {name.rsplit(".", depth)[0] for name in known for depth in range(1, name.count(".") + 1)}
    for name, value in _overrides(argv):
        if name in sections:  # it would drop every default of the section without a word
            raise InputError(f"config.{name} is a section; set its fields one by one: --config.{name}.FIELD=VALUE")
        if name not in known:
            raise InputError(f"unknown setting config.{name}{_nearest(name, known, prefix='config.')}")
        section, _, field = name.rpartition(".")
        if value is None and (config[section] if section else config).get_type(field) is not bool:
            raise InputError(
                f"--config.{name} has no value, and it is no true/false setting; write --config.{name}=VALUE"
            )


def _in_one_line(text: str) -> str:
    """A complaint of absl without the traceback of a config file in its middle."""
    for complaint, rule in _RULES.items():
        text = re.sub(complaint, rule, text)
    lines = [line.strip() for line in text.removeprefix("flag ").splitlines() if line.strip()]
    if "Traceback" not in text:
        return " ".join(lines)
    return f"{lines[0].split(': Error whilst')[0]}: {lines[-1].split(': ', 1)[-1]}"


def overridden(argv: Sequence[str]) -> set[str]:
    """Names of the settings that a command line sets itself, such as "optimizer.name"."""
    return {name for name, _ in _overrides([argv[0], *_config_first(argv[1:])])}


def _overrides(argv: Sequence[str]) -> list[tuple[str, str | None]]:
    """(name, value) of each setting of a command line; None where a word has no value."""
    matches = (re.match(r"--?(?:no)?config\.([^=]*)(?:=(.*))?$", word, re.DOTALL) for word in argv[1:])
    return [(match[1], match[2]) for match in matches if match]


def _nearest(name: str, known: Sequence[str], prefix: str = "", otherwise: str | None = None) -> str:
    """The end of a message about an unknown name: the nearest known one, else ``otherwise``, else all of them."""
    short = {full.rsplit(".", 1)[-1]: full for full in known}
    close = difflib.get_close_matches(name, known, 1, 0.6) or [
        short[match] for match in difflib.get_close_matches(name.rsplit(".", 1)[-1], list(short), 1, 0.6)
    ]
    if close:
        return f"; did you mean {prefix}{close[0]}?"
    return otherwise or f"; known: {', '.join(prefix + other for other in known)}"


def flatten(config: ConfigDict, prefix: str = "") -> dict[str, object]:
    """Dotted name -> value for every field of a config, sections opened, in the order of the file's names."""
    flat: dict[str, object] = {}
    for name, value in config.items():
        if isinstance(value, ConfigDict) and len(value):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def show(config: ConfigDict, options: Options) -> None:
    """Prints every resolved setting, one a line, in a form that can be pasted back into a command line."""
    for name, value in flatten(config).items():
        print(printable(f"--config.{name} (not set)" if value is None else f"--config.{name}={value}"))
    for name, value in options.items():
        if name != "arguments" and value is not None:
            print(printable(f"--{name}={value}"))
    sys.stdout.flush()


def _help(doc: str, config_path: str | None, options: Mapping[str, str], required: Sequence[str], words: str) -> str:
    width = max(len(name) for name in [*options, "config.NAME"]) + 10
    lines = [doc.strip(), "", "Options:"]
    if config_path != "":
        lines.append(f"  {'--config=FILE':<{width}}file with the settings (now: {config_path or 'must be named'})")
        lines.append(f"  {'--config.NAME=VALUE':<{width}}changes one of them")
    for name, text in options.items():
        lines.append(f"  {f'--{name}=TEXT':<{width}}{text}{' (required)' if name in required else ''}")
    if words:
        lines.append(f"  {'WORDS':<{width}}{words}")
    if config_path and pathlib.Path(config_path).is_file():
        lines += _help_on(pathlib.Path(config_path))
    if config_path is None:
        lines += ["", "With --config=FILE this help lists the settings of that file."]
    return "\n".join(lines)


def _help_on(config_file: pathlib.Path, told: frozenset[str] = frozenset()) -> list[str]:
    """The settings of a config file with their comments, and those of the files beside it that it builds on.

    ``told``: those that a file before it has set, and that stand there.
    """
    source = config_file.read_text(encoding="utf-8")
    fields = re.findall(r"^ {4}(?:config\.(\w[\w.]* = .*)|(# .*))$", source, re.MULTILINE)
    fields = [(field, comment) for field, comment in fields if field.split(" = ")[0] not in told]
    lines = ["", f"Settings in {config_file}:", *(f"  {field or comment}" for field, comment in fields)]
    told |= {field.split(" = ")[0] for field, _ in fields if field}
    beside = re.findall(r"^from configs import (.+)$", source, re.MULTILINE)
    for name in ", ".join(beside).split(", ") if beside else ():
        lines += _help_on(config_file.with_name(f"{name}.py"), told)
    return lines


def _output_is_read() -> bool:
    """Whether who reads our standard output is still there."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return not any(event & select.POLLERR for _, event in poll.poll(0))


def main(run: Callable[[list[str]], object]) -> None:
    """Runs a command and ends the process.

    Exit codes: 0 done, 1 a run that cannot go on, 2 bad input (both with one ``error:`` line), 130 stopped by Ctrl-C;
    1 without a line where who read the output has ended, such as head.
    """
    console.plain_output()
    console.plain_logging()
    sys.stdout.reconfigure(errors="backslashreplace")  # a file name need not be UTF-8
    try:
        run(sys.argv)
        sys.stdout.flush()
    except InputError as error:
        print(f"error: {printable(as_options(str(error)))}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        if not _output_is_read():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at the end
            sys.exit(1)
        raise
    except RunError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("error: stopped by the keyboard", file=sys.stderr)
        sys.exit(130)
    sys.exit(0)
