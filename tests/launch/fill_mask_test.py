"""`python -m launch.fill_mask`: a ranked table a mask and the filled text; one line and exit code 2 for bad input."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

from bert.errors import InputError
from bert.model import forward
from launch import fill_mask, flags

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
TINY = CHECKOUT / "tests" / "golden" / "tiny_bert"


def test_two_masks_give_two_tables_and_the_filled_text(capsys):
    fill_mask.run(["fill_mask", f"--model={TINY}", "the  [MASK] [MASK]!", "--top=2"])
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[3]) == ("mask 1", "mask 2")
    assert len(lines) == 7
    for line in (*lines[1:3], *lines[4:6]):
        rank, token, share = line.split()
        assert rank in "12"
        assert token
        assert 0 < float(share) < 1
    assert lines[6].startswith("the  ")
    assert lines[6].endswith("!")
    assert "[" not in lines[6]


def test_entries_of_a_vocabulary_steer_no_terminal(capsys, tmp_path):
    model = shutil.copytree(TINY, tmp_path / "model")
    entries = (model / "vocab.txt").read_text().splitlines()
    odd = [entry if entry.startswith("[") else f"\x1b[31m{i}" for i, entry in enumerate(entries)]
    (model / "vocab.txt").write_text("\n".join(odd))
    fill_mask.run(["fill_mask", f"--model={model}", "[MASK]", "--top=3"])
    table = capsys.readouterr().out.splitlines()[1:4]
    assert all(line.isprintable() for line in table)
    assert all(r"\x1b[31m" in line for line in table)


def test_the_model_runs_once(monkeypatch):
    """Tables and filled text come from one run of the model."""
    runs, run = [], forward.outputs

    def counted(*arguments, **options):
        runs.append(options["wanted"])
        return run(*arguments, **options)

    monkeypatch.setattr(forward, "outputs", counted)
    fill_mask.run(["fill_mask", f"--model={TINY}", "the [MASK] [MASK]"])
    assert runs == [("mlm_logits",)]


def test_loading_is_told_in_one_line_and_what_was_left_out_by_name(caplog, tmp_path):
    """A file of which everything is used: how many tensors. One with a weight that nothing reads: its name, too."""
    caplog.set_level("INFO", logger="absl")
    fill_mask.run(["fill_mask", f"--model={TINY}", "the [MASK]"])
    assert caplog.messages == [f"{TINY / 'model.safetensors'}: 46 tensors used, 0 ignored, 0 missing"]
    caplog.clear()
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    safetensors.numpy.save_file(tensors | {"cls.colour": np.zeros(2)}, folder / "model.safetensors")
    fill_mask.run(["fill_mask", f"--model={folder}", "the [MASK]"])
    assert len(caplog.messages) == 1
    assert "46 tensors used, 1 ignored, 0 missing" in caplog.messages[0]
    assert "ignored cls.colour: no part" in caplog.messages[0]


def test_a_page_is_written_beside_the_table(capsys, tmp_path):
    """Of a model, of the class sheet, and of a file; the layer and head asked for are shown first."""
    page = tmp_path / "pages" / "page.html"
    fill_mask.run(["fill_mask", f"--model={TINY}", "the [MASK]", f"--show={page}", "--layer=1", "--head=3", "--top=2"])
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], len(lines)) == (f"wrote {page}", 5)
    assert '"layer": 1, "head": 3, "top": 2' in page.read_text()
    fill_mask.run(["fill_mask", "--toy", f"--show={page}"])
    sheet = page.read_text()
    assert '"boring"' in sheet
    (tmp_path / "own.json").write_text((TINY.parent / "activity_sheet.json").read_text().replace("boring", "dull"))
    fill_mask.run(["fill_mask", f"--toy={tmp_path / 'own.json'}", f"--show={page}"])
    assert page.read_text() == sheet.replace('"boring"', '"dull"').replace('"word": "fun"', '"word": "Deep"')


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([f"--model={TINY}", "a [MASK]", "--layer=1"], "--layer=1 needs --show"),
        ([f"--model={TINY}", "a [MASK]", "--show=p.html", "--layer=2"], "layer is 2; the model has layers 0 to 1"),
        ([f"--model={TINY}", "a [MASK]", "--show=p.html", "--head=x"], "--head=x: must be a whole number"),
        ([f"--model={TINY}", "a [MASK]", f"--show={TINY}"], "Is a directory"),
        (["--toy"], "--show is missing"),
        (["--toy", "--show=p.html", "a [MASK]"], "--toy takes no text"),
        (["--toy", "--show=p.html", f"--model={TINY}"], "--toy takes no --model"),
        (["--toy=none.json", "--show=p.html"], "none.json: no such file"),
        ([f"--model={TINY}"], "the text is missing"),
        ([f"--model={TINY}", "a", "[MASK]"], "2 texts given"),
        (["a [MASK]"], "--model is missing"),
        ([f"--model={TINY}", "a [MASK]", "--top=0"], "--top=0: must be a whole number of at least 1"),
        ([f"--model={TINY}", "a [MASK]", "--top=x"], "--top=x: must be a whole number"),
        ([f"--model={TINY}", "a [MASK]", "--tops=3"], "unknown option --tops; did you mean --top"),
        (["--model=nowhere", "a [MASK]"], "nowhere: no such directory"),
        ([f"--model={TINY}", "no mask"], r"the text has no \[MASK\]"),
    ],
)
def test_bad_input_is_told_in_one_line(words, message):
    with pytest.raises(InputError, match=message) as caught:
        fill_mask.run(["fill_mask", *words])
    assert "\n" not in str(caught.value)


def test_bad_input_ends_with_code_2(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fill_mask", f"--model={TINY}", "no mask"])
    with pytest.raises(SystemExit) as stop:
        flags.main(fill_mask.run)
    assert stop.value.code == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert errors == ["error: the text has no [MASK]; write [MASK] where a word is to be filled in"]


def test_the_command_makes_no_connection(tmp_path):
    """The whole command in a process of its own, where an attempt to connect or to look up a name ends it; programs
    are kept in the user's cache."""
    watch = (
        "import os, runpy, sys\n"
        "sys.addaudithook(lambda name, _: os._exit(99) if name in ('socket.connect', 'socket.getaddrinfo') else None)\n"
        f"sys.argv = ['fill_mask', '--model={TINY}', 'the [MASK]']\n"
        "runpy.run_module('launch.fill_mask', run_name='__main__')\n"
    )
    usual = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", watch],
        cwd=CHECKOUT, env=usual | {"XDG_CACHE_HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "mask 1" in done.stdout
    assert list((tmp_path / "bert-jax").iterdir())
