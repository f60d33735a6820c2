"""`python -m launch.export`: any source to any format; broken sources, each one line and exit code 2."""

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import bert
from bert.errors import InputError
from launch import export, flags
from tests.bert.interop.broken_sources import BROKEN, KEY, cut, spoil

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
TINY = CHECKOUT / "tests" / "golden" / "tiny_bert"
CLASSIFIER = TINY.with_name("tiny_seqcls")


def run(*words):
    export.run(["export", *map(str, words)])


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_a_hugging_face_directory(tmp_path, capsys, dtype):
    """Says its settings, what was loaded and each file that was written; weights are the source's, or rounded."""
    run(f"--source={CLASSIFIER}", f"--out={tmp_path / 'out'}", *([f"--dtype={dtype}"] if dtype else []))
    lines = capsys.readouterr().out.splitlines()
    settings = [f"--source={CLASSIFIER}", f"--out={tmp_path / 'out'}", "--format=huggingface"]
    assert [line.strip(" \\") for line in lines[:4]] == [*settings, f"--dtype={dtype or 'float32'}"]
    assert "parts: encoder, pooler, sequence_classifier" in lines[4]
    assert lines[5].startswith(f"wrote {tmp_path / 'out' / 'README.md'}, {tmp_path / 'out' / 'config.json'}, ")
    assert str(tmp_path / "out" / "model.safetensors") in lines[5]
    back, before = bert.load(tmp_path / "out"), bert.load(CLASSIFIER)
    assert back.labels == before.labels
    want = before.params["encoder"]["blocks"]["attention"]["query"]["kernel"]
    got = back.params["encoder"]["blocks"]["attention"]["query"]["kernel"]
    np.testing.assert_allclose(got, want, rtol=0 if dtype is None else 2**-8)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == (dtype or "float32")


def test_a_pooling_is_declared_where_it_is_asked_for(tmp_path, capsys):
    """For Sentence-Transformers, and for ourselves; not in a program, and not one that the package lacks."""
    run(f"--source={TINY}", f"--out={tmp_path / 'out'}", "--pooling=cls,max", "--normalize=yes")
    assert "cls + max, made one long" in capsys.readouterr().out
    found = bert.load(tmp_path / "out")
    assert (found.sentences.pooling, found.sentences.layers) == (("cls", "max"), ("normalize",))
    for words, said in (["--format=onnx"], "--format=huggingface"), (["--pooling=pooler"], "pooling is 'pooler'"):
        with pytest.raises(InputError, match=said):
            run(f"--source={TINY}", f"--out={tmp_path / 'new'}", "--normalize=no", *words)
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("format", "file"), [("stablehlo", "model.stablehlo"), ("onnx", "model.onnx")])
def test_a_program(tmp_path, capsys, format, file):
    """One file with weights and program; beside it what a person needs to make its inputs and read its outputs."""
    run(f"--source={CLASSIFIER}", f"--out={tmp_path / 'out'}", f"--format={format}")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {file, "README.md", "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert str(tmp_path / "out" / file) in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "config.json").read_text())["id2label"]["0"] == "entailment"
    assert (tmp_path / "out" / file).stat().st_mode == (tmp_path / "out" / "config.json").stat().st_mode
    run(f"--source={CLASSIFIER}", f"--out={tmp_path / 'out'}")  # one format may replace another
    assert "model.safetensors" in {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format=tflite",), "format is 'tflite'; it must be one of huggingface, stablehlo, onnx"),
        (("--dtype=int8",), "dtype is 'int8'; it must be one of float32, float16, bfloat16"),
        (("--format=onnx", "--dtype=float16"), "a file of the format onnx holds float32; leave dtype out"),
        (("--license=MIT License",), "--license=MIT License: .*identifier"),
        (("--language=english language",), "--language=english language: .*code"),
        (("--fromat=onnx",), "unknown option --fromat; did you mean --format"),
    ],
)
def test_choices_that_there_are_not(tmp_path, words, said):
    with pytest.raises(InputError, match=said):
        run(f"--source={TINY}", f"--out={tmp_path / 'out'}", *words)
    assert list(tmp_path.iterdir()) == []


def test_license_and_languages_are_in_the_card_of_this_export_and_the_next(tmp_path):
    run(f"--source={CLASSIFIER}", f"--out={tmp_path / 'a'}", "--license=apache-2.0", "--language=en,de")
    run(f"--source={tmp_path / 'a'}", f"--out={tmp_path / 'b'}", "--license=mit")
    card = (tmp_path / "b" / "README.md").read_text()
    assert card.startswith("---\nlicense: mit\nlanguage:\n- en\n- de\n")


WHOLE_OR_LESS = pytest.mark.parametrize("words", [(), ("--format=onnx",), ("--dtype=float16",)], ids=str)


@WHOLE_OR_LESS
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("", "is the source"),
        ("model", "is the source"),
        ("link", "is the source"),
        ("new", "lies in the source"),
        ("model/new", "lies in the source"),
    ],
)
def test_nothing_is_written_into_the_source(tmp_path, monkeypatch, words, place, said):
    """On itself, its model/, anywhere inside it, by another name: refused before it is read; it stays as it was."""
    source, link = tmp_path / "run", tmp_path / "link"
    bert.save(bert.load(TINY), source if place in ("", "link") else source / "model")
    link.symlink_to(source)
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    monkeypatch.setattr(bert, "load", None)
    out = link if place == "link" else source / place
    with pytest.raises(InputError, match=rf"--out={out}: {said} .*run; choose"):
        run(f"--source={source}", f"--out={out}", *words)
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before


@WHOLE_OR_LESS
@pytest.mark.parametrize("place", ["new", "checkpoints/new", "model", "model/new"])
def test_a_run_gets_a_whole_model_in_its_place_or_nothing(tmp_path, words, place):
    """Whatever the source is."""
    run_directory = tmp_path / "run"
    (run_directory / "checkpoints").mkdir(parents=True)
    (run_directory / "config.json").write_text("{}")
    if place == "model" and not words:
        run(f"--source={TINY}", f"--out={run_directory / place}")
        assert bert.load(run_directory).fill_mask("the [MASK]") == bert.load(TINY).fill_mask("the [MASK]")
        return
    with pytest.raises(InputError, match=rf"--out=.*/run/{place}: .*float32"):
        run(f"--source={TINY}", f"--out={run_directory / place}", *words)
    assert sorted(path.name for path in run_directory.rglob("*")) == ["checkpoints", "config.json"]


@pytest.mark.parametrize("words", [("--format=onnx",), ("--dtype=bfloat16",)], ids=str)
def test_weights_elsewhere_are_not_replaced_by_what_is_less(tmp_path, monkeypatch, words):
    """Before the source is read."""
    bert.save(bert.load(CLASSIFIER), tmp_path / "out")
    monkeypatch.setattr(bert, "load", None)
    with pytest.raises(InputError, match=r"out/model.safetensors: .*replace"):
        run(f"--source={TINY}", f"--out={tmp_path / 'out'}", *words)


def test_models_of_others_are_not_replaced(tmp_path, monkeypatch):
    """Before the source is read."""
    shutil.copytree(CLASSIFIER, tmp_path / "out")
    monkeypatch.setattr(bert, "load", None)
    with pytest.raises(InputError, match="out: not known to be an export"):
        run(f"--source={TINY}", f"--out={tmp_path / 'out'}")


@pytest.mark.parametrize("place", ["file/out", "/proc/out"])
def test_where_no_directory_can_be_made(tmp_path, monkeypatch, place):
    """One line, before the source is read."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(bert, "load", None)
    with pytest.raises(InputError, match=f"{place}: cannot be made"):
        run(f"--source={TINY}", f"--out={tmp_path / place}")


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_sources(tmp_path, monkeypatch, capsys, fault):
    """Exit code 2, one line that names the file and the fault, nothing executed, nothing written."""
    change, *words = BROKEN[fault]
    source = tmp_path / "source"
    shutil.copytree(TINY, source)
    change(source)
    monkeypatch.setattr(sys, "argv", ["export", f"--source={source}", f"--out={tmp_path / 'out'}"])
    with pytest.raises(SystemExit) as exited:
        flags.main(export.run)
    assert exited.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith(f"error: {source}")
    assert all(word in error for word in words), error
    assert not (source / "executed").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_weight_too_large_for_float16_is_refused(tmp_path):
    """70,000 is beyond float16 and not beyond bfloat16; nothing is written where it is refused."""
    source = tmp_path / "source"
    shutil.copytree(TINY, source)
    spoil(70_000)(source)
    with pytest.raises(InputError, match=rf"{KEY} holds 70000, .*float16"):
        run(f"--source={source}", f"--out={tmp_path / 'out'}", "--dtype=float16")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    run(f"--source={source}", f"--out={tmp_path / 'out'}", "--dtype=bfloat16")


def test_the_command_line_ends_with_code_2_and_one_line(tmp_path):
    """As a person runs it: the report of a good source, one line of error for a bad one, no traceback."""
    shutil.copytree(TINY, tmp_path / "cut")
    cut(tmp_path / "cut")
    command = [sys.executable, "-m", "launch.export", f"--source={tmp_path / 'cut'}", f"--out={tmp_path / 'out'}"]
    settings = [*command[3:], "--format=huggingface", "--dtype=float32"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert [line.strip(" \\") for line in done.stdout.splitlines()] == settings
    assert done.stderr.startswith("error: ")
    command[3] = f"--source={TINY}"
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "46 tensors used, 0 ignored, 0 missing" in done.stderr
