"""The documented command lines on real data sets, a few steps each (slow): every one runs to a model that answers."""

import pathlib
import re
import shlex
import tarfile
import zipfile

import numpy as np
import pytest

import bert
from bert import inference
from bert.architectures.bert import BertConfig
from bert.model.heads import Model, PretrainingHead
from bert.tokenizer.wordpiece import WordPiece
from launch import evaluate, finetune

pytestmark = pytest.mark.slow
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"^bert finetune (--config=.*?[^\\])$", re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """The command lines of a page that name a data set."""
    text = (CHECKOUT / "docs" / page).read_text()
    return [line.replace("\\\n", " ") for line in LINE.findall(text) if "=data/" in line]


def named(command: str) -> str:
    return re.search(r"configs/(\S+)", command)[1] + " " + re.search(r"data=data/(\S+)", command)[1]


OF_TEXTS, OF_TOKENS = commands("finetuning.md"), commands("token_tasks.md")


@pytest.fixture(scope="module")
def start(shared, tmp_path_factory) -> pathlib.Path:
    """An untrained BERT of two layers with the vocabulary of the released uncased models."""
    import jax

    vocab = shared / "golden" / "vocab" / "bert-base-uncased-vocab.txt"
    tokenizer = WordPiece.from_vocab(vocab, lower_case=True)
    config = BertConfig.of_size("tiny", vocab_size=tokenizer.vocab_size)
    model, zeros = Model(config, PretrainingHead(config)), np.zeros((1, 4), np.int32)
    keys = ("token_ids", "type_ids", "position_ids", "example_ids", "masked_positions", "cls_positions")
    params = jax.device_get(jax.jit(model.init)(jax.random.key(0), dict.fromkeys(keys, zeros))["params"])
    return bert.save(inference.from_params(config, params, tokenizer), tmp_path_factory.mktemp("start") / "model")


@pytest.fixture(scope="module")
def data(shared, tmp_path_factory) -> pathlib.Path:
    """The folder of data sets, with what comes as a zip unpacked."""
    folder = tmp_path_factory.mktemp("data")
    for path in (shared / "data").iterdir():
        (folder / path.name).symlink_to(path)
    with zipfile.ZipFile(shared / "data" / "trec_question_classes" / "qc.zip") as packed:
        packed.extractall(folder)
    with tarfile.open(shared / "data" / "ner_mturk" / "task1.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return folder


def test_the_pages_have_the_commands():
    assert len(OF_TEXTS) >= 14
    assert len(OF_TOKENS) >= 9


def trained(command: str, start, data, run, *more: str) -> str:
    """Runs a documented command for a few steps; the place of the data that it can be evaluated on, if any."""
    words = [word.replace("data/", f"{data}/") for word in shlex.split(command)]
    words = [word for word in words if not word.startswith(("--config.init_from", "--workdir"))]
    finetune.run(["finetune", *words, f"--config.init_from={start}", f"--workdir={run}", "--config.epochs=0.01",
                  "--config.allocator=system", *more])  # fmt: skip
    held = next((word.split("=", 1)[1] for word in words if word.startswith("--config.validation=")), "")
    glue = "configs/glue.py" in command
    return held or (next(w.split("=", 1)[1] for w in words if w.startswith("--config.data=")) if glue else "")


def check_read(shown: str) -> None:
    """Rows read = kept + those elsewhere + those dropped."""
    read, kept = (int(n.replace(",", "")) for n in re.search(r"([\d,]+) rows read, ([\d,]+) kept", shown).groups())
    assert 0 < kept <= read


@pytest.mark.parametrize("command", OF_TEXTS, ids=map(named, OF_TEXTS))
def test_a_documented_command_on_texts_runs(start, data, tmp_path, capsys, command):
    """To a model with the labels of the data, and an evaluation of every row."""
    source = trained(command, start, data, tmp_path / "run", "--config.max_length=48")
    check_read(capsys.readouterr().out)
    model = bert.load(tmp_path / "run")
    assert len(model.predict(["one text"] if len(model.extra["classification"]["text"]) == 1 else [("a", "b")])) == 1
    if source:
        evaluate.run(["evaluate", f"--model={tmp_path / 'run'}", f"--data={source}"])
        scored = capsys.readouterr().out
        rows = re.search(r"([\d,]+) rows read", scored)[1]
        assert f"{rows} rows scored" in scored


@pytest.mark.parametrize("command", OF_TOKENS, ids=map(named, OF_TOKENS))
def test_a_documented_command_on_tokens_runs(start, data, tmp_path, capsys, command):
    """To a model whose spans stand where it says, in characters of the text."""
    windows = ["--config.max_length=96", "--config.window_step=32"]
    windows += [] if "tagging" in command else ["--config.max_question=32"]
    source = trained(command, start, data, tmp_path / "run", *windows)
    check_read(capsys.readouterr().out)
    model, text = bert.load(tmp_path / "run"), "Pride and Prejudice\r\n  was written by Jane Austen."
    row = {"question": "Who wrote it?", "context": text, "text": text}
    (told,) = model.predict([row], details=True)
    for found in (*told.get("spans", ()), *told.get("candidates", ()), *told.get("entities", ())):
        if found["start"] is not None:
            assert text[found["start"] : found["end"]] == found.get("text", found.get("answer"))
    if source:
        evaluate.run(["evaluate", f"--model={tmp_path / 'run'}", f"--data={source}"])
        assert re.search(r"^n +[\d,]+ (rows|words|questions) scored$", capsys.readouterr().out, re.MULTILINE)
