"""The wheel in a new environment, in an empty folder: its commands give what those of the checkout give."""

import csv
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import pytest

from launch import embed, evaluate, export, fill_mask, finetune, predict, score
from launch.commands import COMMANDS
from tests.launch import made_sentences
from tests.launch.review_table import QUICK, TINY, reviews, write

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
UV = pathlib.Path(sys.executable).with_name("uv")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Runs the installed program; the finished process."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "source").mkdir()
    names = ("bert", "launch", "tasks", "configs", "setup.py", "pyproject.toml", "README.md", "LICENSE")
    for name in names:  # building writes beside the sources
        copy = shutil.copytree if (CHECKOUT / name).is_dir() else shutil.copy
        copy(CHECKOUT / name, folder / "source" / name)
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", folder, folder / "source"], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, wheel], check=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "JAX_PLATFORMS": "cpu"}

    def run(cwd, *words):
        command = [python.with_name("bert"), *map(str, words)]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Fine-tuned in the checkout: name of a task -> its run."""
    folder, rng = tmp_path_factory.mktemp("models"), random.Random(0)
    table = write(folder / "train.csv", reviews(40, 0))
    words = (f"--config.data={table}", "--config.text=review", "--config.label=liked", "--config.epochs=1")
    finetune.run(["finetune", *QUICK, *words, f"--workdir={folder / 'table'}"])
    tags, sentences = folder / "train.conll", [made_sentences.sentence(rng, ["paris"]) for _ in range(40)]
    tagged = (
        "".join(f"{word.replace(' ', '_')} {'B-LOC' if word == 'paris' else 'O'}\n" for word in words)
        for words in sentences
    )
    tags.write_text("\n".join(tagged))
    words = ("--config=configs/tagging.py", f"--config.data={tags}", *made_sentences.WINDOWS[:2])
    made_sentences.run(folder, "tagging", *words, "--config.epochs=1")
    (folder / "train.json").write_text(json.dumps(questions(40)))
    words = ("--config=configs/squad.py", f"--config.data={folder / 'train.json'}", "--config.validation_share=0")
    made_sentences.run(folder, "squad", *words, *made_sentences.WINDOWS, "--config.epochs=1")
    return {"table": folder / "table", "tagging": folder / "tagging", "squad": folder / "squad"}


def questions(count):
    """SQuAD's form; an article of one passage for each question."""
    answers = [{"text": "paris", "answer_start": 12}]
    asked = [{"id": str(i), "question": "where", "answers": answers} for i in range(count)]
    articles = [{"title": qa["id"], "paragraphs": [{"context": "mary sat in paris", "qas": [qa]}]} for qa in asked]
    return {"version": "1.1", "data": articles}


def test_help_names_all_commands_and_which_need_the_checkout(program, tmp_path):
    shown = program(tmp_path, "--help").stdout
    assert all(f"  {name} " in shown for name in COMMANDS)
    for name, command in COMMANDS.items():
        done = program(tmp_path, name, "--help")
        assert (done.returncode, "checkout" in done.stderr) == ((2, True) if command.needs_checkout else (0, False))


def test_predictions_are_those_of_the_checkout(program, models, tmp_path, monkeypatch):
    """Of csv, tsv, jsonl, CoNLL and SQuAD's json, without the extras."""
    monkeypatch.chdir(tmp_path)
    rows = reviews(12, 1)
    write(pathlib.Path("new.csv"), rows)
    with open("new.tsv", "w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([list(rows[0]), *(row.values() for row in rows)])
    made_sentences.lines(pathlib.Path("new.jsonl"), rows)
    pathlib.Path("new.conll").write_text("paris O\nis O\nfun O\n\nmary O\nsat O\n")
    pathlib.Path("new.json").write_text(json.dumps(questions(3)))
    for task, ending in (*(("table", e) for e in ("csv", "tsv", "jsonl")), ("tagging", "conll"), ("squad", "json")):
        words = [f"--model={models[task]}", f"--input=new.{ending}", f"--output=ours.{ending}"]
        done = program(tmp_path, "predict", *words)
        assert (done.returncode, pathlib.Path("ours." + ending).exists()) == (0, True), done.stderr
        predict.run(["predict", *words[:2], f"--output=theirs.{ending}"])
        assert close(pathlib.Path(f"ours.{ending}").read_text(), pathlib.Path(f"theirs.{ending}").read_text())
        evaluation = [f"--model={models[task]}", f"--data=new.{ending}"]
        assert program(tmp_path, "evaluate", *evaluation, "--out=ours.scores").returncode == 0
        evaluate.run(["evaluate", *evaluation, "--out=theirs.scores"])
        assert close(pathlib.Path("ours.scores").read_text(), pathlib.Path("theirs.scores").read_text())


def test_other_commands_give_what_those_of_the_checkout_give(program, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("texts.txt").write_text("the movie is fun .\nmary sat in paris .\n")
    for module, words in (
        (fill_mask, ["fill-mask", f"--model={TINY}", "the [MASK] sat ."]),
        (score, ["score", f"--model={TINY}", "--data=texts.txt", "--out=scores.json"]),
        (embed, ["embed", f"--model={TINY}", "--input=texts.txt", "--output=vectors.npy"]),
        (export, ["export", f"--source={TINY}", "--out=out"]),
        (export, ["export", f"--source={TINY}", "--out=program", "--format=stablehlo"]),
    ):
        done = program(tmp_path, *words)
        assert done.returncode == 0, done.stderr
        capsys.readouterr()
        module.run(words)
        assert close(without_rates(done.stdout), without_rates(capsys.readouterr().out))


def test_what_needs_an_extra_says_so(program, tmp_path):
    (tmp_path / "a.parquet").write_text("PAR1")
    for words in (["--input=a.parquet", "--output=b.npy"], ["--input=t.txt", "--output=b.parquet"]):
        done = program(tmp_path, "embed", f"--model={TINY}", *words)
        assert done.returncode == 2
        assert "pyarrow (it is in the extra 'arrow')" in done.stderr


def without_rates(text):
    return "\n".join(line for line in text.splitlines() if "/s" not in line)


def close(one, other):
    """Whether two texts are the same but for the last digits of numbers."""
    words, others = (re.split(r"(\d+\.\d+(?:e-?\d+)?)", text) for text in (one, other))  # each second one is a number
    numbers = [float(word) for word in words[1::2]]
    return words[::2] == others[::2] and numbers == pytest.approx([float(word) for word in others[1::2]], abs=1e-4)
