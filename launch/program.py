"""The program `bert`: ``bert COMMAND ...`` runs a command of launch/. It imports nothing that is slow to start."""

import importlib
import importlib.metadata
import pathlib
import platform
import sys

import launch
from launch.commands import CHECKOUT, COMMANDS, module_of


def main() -> None:
    """Runs the command that the command line names, and ends the process; exit codes are those of `flags.main`."""
    sys.excepthook = launch.without_traceback  # until `flags.main` catches Ctrl-C
    program, words = _program(sys.argv[0]), sys.argv[1:]
    if words[:1] == ["help"] and len(words) == 2:
        words = [words[1], "--help"]
    if not words or words[0] in ("--help", "-help", "-h", "help"):
        try:
            print(_help(program), flush=True)
        except BrokenPipeError:
            launch.end_without_reader()
    elif words[0] in ("--version", "-V", "version"):
        jax, python = importlib.metadata.version("jax"), platform.python_version()
        print(f"bert {importlib.metadata.version('bert-jax')} (jax {jax}, Python {python})")
    else:
        from launch import flags

        sys.argv = [f"{program} {words[0]}", *words[1:]]
        flags.main(lambda argv: _run(words[0], argv))


def _program(started: str) -> str:
    """The program as it was typed: "bert", or "python -m bert"."""
    path = pathlib.Path(started)
    return "python -m bert" if path.name == "__main__.py" else path.stem


def _run(name: str, argv: list[str]) -> None:
    from bert.errors import InputError
    from launch.nearest import nearest

    if name not in COMMANDS:
        kind, known = ("option", ["--help", "--version"]) if name.startswith("-") else ("command", list(COMMANDS))
        raise InputError(f"unknown {kind} {name}{nearest(name, known)}")
    if COMMANDS[name].needs_checkout and not _has_recipes():
        way_out = "clone the repository of bert-jax, run make .venv in it, and use the program .venv/bin/bert there"
        raise InputError(f"bert {name} needs the recipes in configs/, which only a checkout has; {way_out}")
    importlib.import_module(module_of(name)).run(argv)


def _has_recipes() -> bool:
    return (CHECKOUT / "configs").is_dir()


def _help(program: str) -> str:
    """What the program does, and a line for each command."""
    absent = "" if _has_recipes() else " (in a checkout only)"
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{command.help}{absent * command.needs_checkout}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "Pretrains BERT encoders, fine-tunes them, uses them, and exchanges weights with other libraries.",
            "",
            f"{program} COMMAND ...",
            f"{program} COMMAND --help    the options of a command, and examples",
            f"{program} --version         versions of bert-jax, JAX and Python",
            "",
            "Commands:",
            *lines,
        ]
    )
