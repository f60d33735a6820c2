"""The commands on every page are commands of ours, whose options the program takes, or of a known program of others."""

import importlib
import re
import shlex

import pytest

from bert.errors import InputError
from launch import flags
from launch.commands import COMMANDS, module_of
from launch.local_processes import TRAINING
from tests.docs.blocks import CHECKOUT, PAGES, blocks_of

OTHERS = {
    "pip",
    "docker",
    "hf",
    "git",
    "unzip",
    "source",
    "touch",
    ".venv/bin/uv",
    ".venv/bin/pre-commit",
    "python3",
    "cd",
    "kubectl",
}
STARTERS = {"srun", "mpirun"}  # they run the command behind their options
FILES = {"launch/slurm.sh", "launch/tpu_pod.sh"}  # they run bert with the words behind them
TARGETS = set(re.findall(r"^([a-z.-]+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE))


class Parsed(Exception):
    """The command line was accepted."""


def lines_of(page: str) -> list[str]:
    """The command lines of a page: of blocks in bash all, of blocks without a language those that begin like one."""
    found = []
    for block in blocks_of(page):
        joined = re.sub(r"\s*\\\n\s*", " ", block.text).splitlines()
        lines = [line for line in joined if line.strip() and not line.startswith("#")]
        if block.language == "":
            lines = [line for line in lines if re.match(r"bert [a-z]|python -m|--config|make [a-z]|\.venv/", line)]
        found += lines if block.language in ("", "bash") else []
    return [re.split(r"(?<=\S) {3,}(?=\S)", line)[0] for line in found]


def check(line: str) -> None:
    """Raises where a command line is none of ours or has an option that the command does not take."""
    words = shlex.split(line)
    if words[:2] == ["docker", "run"]:
        words = ["bert", *words[words.index("bert-jax:cuda") + 1 :]]
    if words[0] in STARTERS:
        words = words[next(i for i, word in enumerate(words) if word == "bert") :]
    if behind := [words[i + 1 :] for i, word in enumerate(words) if word in FILES]:
        words = ["bert", *behind[0]]
    if words[1:2] == ["local-processes"]:
        check(shlex.join(["bert", *words[next(i for i, word in enumerate(words) if word in TRAINING) :]]))
    if words[0].startswith("--config."):
        words = ["bert", "finetune", "--config=table", *words]
    if words[0] == ".venv/bin/bert":
        words[0] = "bert"
    if words[0] == "make":
        assert [word for word in words[1:] if "=" not in word and word not in TARGETS] == []
    elif words[0] == "bert" and words[1].startswith("--"):
        assert words[1] in ("--help", "--version")
    elif words[0] == "bert" or (words[1:3] and words[1] == "-m" and words[2].startswith(("launch.", "bench."))):
        name = module_of(words[1]) if words[0] == "bert" else words[2]
        assert words[0] != "bert" or words[1] in COMMANDS
        with pytest.raises(Parsed):
            importlib.import_module(name).run(words[1:] if words[0] == "bert" else words[2:])
    else:
        assert words[0] in OTHERS or words[0].startswith(".venv/bin/python")


@pytest.fixture
def parsing(monkeypatch):
    """Commands end when their command line was accepted; what a page says to add may be missing."""
    real = flags.parse

    def parse(argv, doc, options, required=(), **rest):
        real(argv, doc, options, (), **rest)
        raise Parsed

    monkeypatch.setattr(flags, "parse", parse)
    monkeypatch.chdir(CHECKOUT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_take_the_options_that_the_page_shows(page, parsing):
    for line in lines_of(page.read_text()):
        try:
            check(line)
        except (AssertionError, InputError, SystemExit) as error:
            raise AssertionError(f"{page.name}: {line}") from error


@pytest.mark.parametrize(
    "line",
    ["bert predict --modell=x", "bert finetune --config=table --config.epoch=1", "bert prdict", "make tests", "foo"],
)
def test_a_wrong_line_is_noticed(line, parsing):
    with pytest.raises((AssertionError, InputError)):
        check(line)


def test_every_block_has_a_known_kind():
    """So that none goes unchecked: Python runs, bash is parsed, the others are outputs and contents of files."""
    kinds = {block.language for page in PAGES for block in blocks_of(page.read_text())}
    assert kinds <= {"", "bash", "python", "text", "json", "yaml"}
