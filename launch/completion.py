"""Prints a script with which a shell completes the commands of `bert`, their options and their settings.

bert completion bash > ~/.local/share/bash-completion/completions/bert
bert completion zsh > ~/.zfunc/_bert    with fpath+=~/.zfunc before compinit in ~/.zshrc
bert completion fish > ~/.config/fish/completions/bert.fish

Settings are those of a command's usual recipe. Print the script again after an update.
"""

import argparse
import importlib
import itertools
from typing import Any

import shtab

from bert.errors import InputError, check_choice
from launch import config_files, flags
from launch.commands import CHECKOUT, COMMANDS, module_of

OPTIONS: dict[str, str] = {}
SHELLS = ("bash", "zsh", "fish")


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, arguments=", ".join(SHELLS))
    if len(options.arguments) != 1:
        raise InputError(f"name one shell: bert completion {'|'.join(SHELLS)}")
    check_choice("the shell", options.arguments[0], SHELLS)
    print(shtab.complete(parser(), shell=options.arguments[0]))


def parser() -> argparse.ArgumentParser:
    """All commands with their options, as argparse has them; only to make scripts of."""
    program = argparse.ArgumentParser("bert", add_help=False)
    for option in ("help", "version"):
        program.add_argument(f"--{option}", action="store_true", help=f"shows the {option}")
    commands = program.add_subparsers()
    for name, command in COMMANDS.items():
        sub: Any = commands.add_parser(name, help=command.help, add_help=False)
        entries = {"help": "shows the help"} | dict(importlib.import_module(module_of(name)).OPTIONS)
        if command.config and (CHECKOUT / command.config).is_file():
            entries |= {"config": "a recipe, or a file of settings"}
            described = config_files.described(["", f"--config={CHECKOUT / command.config}"], None)
            settings = itertools.chain.from_iterable(described.values())
            entries |= {f"config.{setting.name}": setting.comment for setting in settings}
        for option, text in entries.items():
            if option == "help":
                sub.add_argument("--help", action="store_true", help=text)
            else:
                sub.add_argument(f"--{option}", help=text.replace("%", "%%")).complete = shtab.FILE
    return program
