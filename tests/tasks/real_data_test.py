"""The documented command lines on real data sets, a few steps each (slow): every one runs to a model that answers."""

import pathlib
import re
import shlex
import zipfile

import numpy as np
import pytest

import bert
from bert import inference
from bert.config import BertConfig
from bert.model.heads import Model, PretrainingHead
from bert.text.tokenizer import Tokenizer
from launch import evaluate, finetune

pytestmark = pytest.mark.slow
CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "finetuning.md").read_text()
COMMANDS = [
    line.replace("\\\n", " ")
    for line in re.findall(r"^python -m launch\.finetune (--config=.*?[^\\])$", PAGE, re.MULTILINE | re.DOTALL)
    if "=data/" in line
]


@pytest.fixture(scope="module")
def start(shared, tmp_path_factory) -> pathlib.Path:
    """An untrained BERT of two layers with the vocabulary of the released uncased models."""
    import jax

    vocab = shared / "golden" / "vocab" / "bert-base-uncased-vocab.txt"
    tokenizer = Tokenizer.from_vocab(vocab, lower_case=True)
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
    return folder


def test_the_page_has_the_commands():
    assert len(COMMANDS) >= 14


@pytest.mark.parametrize("command", COMMANDS, ids=[re.search(r"data=(\S+)", c)[1] for c in COMMANDS])
def test_a_documented_command_runs(start, data, tmp_path, capsys, command):
    """Rows read = kept + dropped, a model with the labels of the data, and an evaluation of every row."""
    words = [word.replace("data/", f"{data}/") for word in shlex.split(command)]
    words = [word for word in words if not word.startswith(("--config.init_from", "--workdir"))]
    run = tmp_path / "run"
    finetune.run(["finetune", *words, f"--config.init_from={start}", f"--workdir={run}", "--config.epochs=0.01",
                  "--config.max_length=48", "--config.allocator=system"])  # fmt: skip
    shown = capsys.readouterr().out
    read, kept = (int(n.replace(",", "")) for n in re.search(r"([\d,]+) rows read, ([\d,]+) kept", shown).groups())
    assert 0 < kept <= read
    model = bert.load(run)
    assert len(model.predict(["one text"] if len(model.extra["classification"]["text"]) == 1 else [("a", "b")])) == 1
    held = next((word.split("=", 1)[1] for word in words if word.startswith("--config.validation=")), None)
    if held or "configs/glue.py" in command:
        source = held or next(word.split("=", 1)[1] for word in words if word.startswith("--config.data="))
        evaluate.run(["evaluate", f"--model={run}", f"--data={source}"])
        scored = capsys.readouterr().out
        rows = re.search(r"([\d,]+) rows read", scored)[1]
        assert f"{rows} rows scored" in scored
