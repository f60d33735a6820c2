"""The program `bert`: its commands from any folder, named in the form that was typed."""

import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

from launch.commands import COMMANDS, module_of

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = "import sys; from bert.__main__ import main; sys.argv[0] = '/usr/bin/bert'; main()"


@pytest.fixture
def bert(tmp_path):
    """The finished process of the program, in an empty folder; like the installed script, or by another form."""

    def run(*words, form=("-c", SCRIPT)):
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        command = [sys.executable, *form, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_the_help_lists_every_command(bert):
    """At once: without JAX and without what reads settings. Also without a word."""
    code = f"{SCRIPT}; print([m for m in ('jax', 'numpy', 'absl') if m in sys.modules])"
    done = bert("--help", form=("-c", code))
    assert done.stdout.endswith("[]\n")
    listed = re.findall(r"^  ([\w-]+)  +(\w.*)$", done.stdout, re.MULTILINE)
    assert dict(listed) == {name: command.help for name, command in COMMANDS.items()}
    assert done.stdout == f"{bert('--help').stdout}[]\n"
    assert bert().stdout == bert("--help").stdout


def test_every_command_of_launch_is_listed():
    runs = [path for path in (CHECKOUT / "launch").glob("*.py") if "\ndef run(argv" in path.read_text()]
    assert {f"launch.{path.stem}" for path in runs} == set(map(module_of, COMMANDS))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_three_examples_with_the_form_that_was_typed(name, capsys, monkeypatch):
    """Of each command, for each of the three ways to start it."""
    module = importlib.import_module(module_of(name))
    for started, form in (
        (f"bert {name}", f"bert {name}"),
        (f"python -m bert {name}", f"python -m bert {name}"),
        (module.__file__, f"python -m {module_of(name)}"),
    ):
        monkeypatch.setattr(sys, "argv", [started, "--help"])
        with pytest.raises(SystemExit) as caught:
            module.run(sys.argv)
        text = capsys.readouterr().out
        assert caught.value.code == 0
        assert re.findall(r"^  --(\w+)=TEXT ", text, re.MULTILINE) == list(module.OPTIONS)
        assert len(re.findall(rf"^ *{form} ", text, re.MULTILINE)) == 3
        names = "|".join([*COMMANDS, *(name.replace("-", "_") for name in COMMANDS)])
        forms = re.findall(rf"((?:python -m )?\b(?:bert |launch\.))(?:{names})\b", text)  # also of other commands
        assert set(forms) == {re.sub(r"[\w-]+$", "", form)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predcit"], r"unknown command predcit; did you mean predict\?"),
        (["--hepl"], r"unknown option --hepl; did you mean --help\?"),
        (["--versoin"], r"unknown option --versoin; did you mean --version\?"),
        (["--model=m"], r"unknown option --model=m; known: --help, --version"),
        (["help", "predcit"], r"unknown command predcit; did you mean predict\?"),
        (["fill_mask"], r"unknown command fill_mask; did you mean fill-mask\?"),
        (["fill-mask", "--model=m"], r"the text is missing: bert fill-mask --model=DIR"),
        (["predict", "--modle=m"], r"unknown option --modle; did you mean --model\?"),
        (["finetune", "--config=tabel"], r"--config=tabel: no such file; recipes: .*\btable\b"),
    ],
)
def test_bad_input_is_one_line(bert, words, message):
    done = bert(*words)
    assert re.fullmatch(rf"error: {message}.*\n", done.stderr)
    assert (done.returncode, done.stdout) == (2, "")


def test_the_version(bert):
    done = bert("--version")
    assert re.fullmatch(r"bert \d\S* \(jax \d\S*, Python \d\S*\)\n", done.stdout)
    assert bert("version").stdout == done.stdout


def test_help_on_a_command(bert):
    assert bert("help", "push").stdout == bert("push", "--help").stdout != bert("help").stdout


@pytest.mark.slow
def test_another_folder_with_folders_of_the_same_names(bert, tmp_path):
    """What is named launch, tasks or configs there is not imported; recipes are those of the checkout."""
    for name in ("launch", "tasks", "configs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one')")
    for form in (("-c", SCRIPT), ("-m", "bert")):
        for recipe in ("configs/glue.py:mrpc", "glue:mrpc"):
            done = bert("finetune", f"--config={recipe}", "--help", form=form)
            assert "--config.glue=mrpc " in done.stdout


def test_a_recipe_of_the_current_folder_counts_first(bert, tmp_path):
    (tmp_path / "configs").mkdir()
    text = "from configs import table\n\ndef get_config():\n    config = table.get_config()\n    config.epochs = 77.0\n"
    (tmp_path / "configs" / "table.py").write_text(f"{text}    return config\n")
    assert "--config.epochs=77.0 " in bert("finetune", "--config=configs/table.py", "--help").stdout
    assert "--config.epochs=3.0 " in bert("finetune", "--config=table", "--help").stdout


def test_without_recipes(monkeypatch, capsys, tmp_path):
    """As in the wheel: commands that need them say in one line where they are; the help says so, too."""
    from bert.errors import InputError
    from launch import program

    monkeypatch.setattr(program, "CHECKOUT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bert", "--help"])
    program.main()
    lines = capsys.readouterr().out.splitlines()
    absent = [line.split()[0] for line in lines if line.endswith("(in a checkout only)")]
    assert absent == ["prepare", "pretrain", "finetune"]
    for name in absent:
        with pytest.raises(InputError, match=rf"^bert {name} .*configs/.*checkout"):
            program._run(name, ["--help"])
