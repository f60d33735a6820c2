"""Finds, checks and reads the file of settings that ``--config=FILE`` names."""

import contextlib
import pathlib
import re
import warnings
from collections.abc import Sequence

from absl import flags as absl_flags
from ml_collections import ConfigDict, config_flags

from bert.errors import InputError

# Python's message about a value of the wrong type -> the rule.
_RULES = {
    r"invalid literal for int\(\) with base 10: .*": "must be a whole number, in digits",
    r"could not convert string to float: .*": "must be a number",
    r"\('Non-boolean argument to boolean flag', .*\)": "must be True or False",
}


def path_of(argv: Sequence[str], default: str | None) -> str | None:
    """FILE of the last ``--config=FILE``, without its ``:argument``; else the default's."""
    named = [word.split("=", 1)[1] for word in argv[1:] if re.match(r"--?config=", word)]
    path = named[-1] if named else default
    return path.split(":", 1)[0] if path else path


def check(argv: Sequence[str], default: str | None) -> None:
    """Refuses a command line that names no config file, or one that does not exist."""
    path = path_of(argv, default)
    if path is None or any(re.fullmatch(r"--?config(=(:.*)?)?", word) for word in argv[1:]):
        raise InputError("--config=FILE is missing: name a file such as configs/quickstart.py; see --help")
    if path and not pathlib.Path(path).is_file():
        near = sorted(str(p) for p in pathlib.Path(path).parent.glob("*.py")) or ["no .py file in that folder"]
        raise InputError(f"--config={path}: no such file; there are: {', '.join(near)}")


def settings_of(argv: Sequence[str], default: str | None) -> ConfigDict:
    """The settings of the config file, without the changes that the command line makes."""
    only_files = [argv[0], *(word for word in argv[1:] if re.match(r"--?config=", word))]
    values = absl_flags.FlagValues()
    try:
        with quiet_loader():
            config_flags.DEFINE_config_file("config", default, flag_values=values, sys_argv=only_files)
            values(only_files)
    except absl_flags.Error as error:
        raise InputError(in_one_line(str(error))) from None
    except Exception as error:  # the file is code and may raise anything
        raise InputError(
            f"--config={path_of(argv, default)}: not a Python file with settings "
            f"({type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else 'no message'}); "
            "copy one of configs/ and change that"
        ) from None
    return values["config"].value


@contextlib.contextmanager
def quiet_loader():
    """Hides a warning of newer Pythons about how ml_collections loads config files."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the load_module", DeprecationWarning)
        yield


def in_one_line(text: str) -> str:
    """A message of absl on one line, without the traceback of a config file in its middle."""
    for message, rule in _RULES.items():
        text = re.sub(message, rule, text)
    lines = [line.strip() for line in text.removeprefix("flag ").splitlines() if line.strip()]
    if "Traceback" not in text:
        return " ".join(lines)
    return f"{lines[0].split(': Error whilst')[0]}: {lines[-1].split(': ', 1)[-1]}"


def help_on(config_file: pathlib.Path, listed: frozenset[str] = frozenset()) -> list[str]:
    """The lines of ``--help`` on a config file: its settings with their comments, then those of files it builds on.

    Settings in ``listed`` are left out.
    """
    source = config_file.read_text(encoding="utf-8")
    fields = re.findall(r"^ {4}(?:config\.(\w[\w.]* = .*)|(# .*))$", source, re.MULTILINE)
    fields = [(field, comment) for field, comment in fields if field.split(" = ")[0] not in listed]
    lines = ["", f"Settings in {config_file}:", *(f"  {field or comment}" for field, comment in fields)]
    listed |= {field.split(" = ")[0] for field, _ in fields if field}
    beside = re.findall(r"^from configs import (.+)$", source, re.MULTILINE)
    for name in ", ".join(beside).split(", ") if beside else ():
        lines += help_on(config_file.with_name(f"{name}.py"), listed)
    return lines
