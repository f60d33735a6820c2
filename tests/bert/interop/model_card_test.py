"""Model cards: metadata that the Hub reads, code that runs, nothing of a user lost or taken for Markdown."""

import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCard

import bert
from bert import prediction
from bert.interop import model_card, onnx
from tests.bert.refusals import refused
from tests.torch_package import import_torch

# Model directory -> what the Hub calls its task.
PIPELINES = {
    "tiny_bert": "fill-mask",
    "tiny_seqcls": "text-classification",
    "tiny_regression": "text-classification",
    "tiny_tokcls": "token-classification",
    "tiny_qa": "question-answering",
}
BIO = {"bio_mrc": {"max_length": 48, "stride": 16}}
SCORES = {"data": "held.csv", "values": {"f1:yes": {"title": "f1 of yes", "value": 0.75, "low": 0.5, "high": 0.9}}}


def read(folder) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def metadata(folder) -> Any:
    """As huggingface_hub reads it."""
    return ModelCard(read(folder)).data


def blocks(folder, language) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", read(folder), re.DOTALL)


def run(folder, language, chosen, monkeypatch) -> str:
    """What the one block with the word ``chosen`` prints, run in the folder of the card."""
    (code,) = [block for block in blocks(folder, language) if chosen in block]
    monkeypatch.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})
    return printed.getvalue()


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("format", ["huggingface", "onnx"])
def test_the_hub_reads_the_metadata_of_each_task_and_format(golden, tmp_path, name, format):
    folder = bert.save(bert.load(golden / name), tmp_path / "out", format=format)
    data = metadata(folder)
    libraries = {"huggingface": "transformers", "onnx": "onnx"}
    assert (data.library_name, data.pipeline_tag) == (libraries[format], PIPELINES[name])
    assert (data.license, data.datasets, data.eval_results) == (None, None, None)  # nothing is invented
    assert "## Training" not in read(folder)
    assert "## Scores" not in read(folder)


def test_scores_are_results_with_their_interval_baseline_and_data(golden, tmp_path):
    model = bert.load(golden / "tiny_seqcls")
    rows = {"accuracy": {"title": "accuracy", "value": 0.8, "baseline": 0.5}, "f1": {"title": "f1", "value": None}}
    scores = {"data": "held.csv", "values": SCORES["values"] | rows, "baseline": "a linear model"}
    model.extra["card"] = {
        "scores": scores,
        "license": "mit",
        "language": ["en"],
        "base": "a_b",
        "training": {"lr": 2e-5},
    }
    folder = bert.save(model, tmp_path / "mine")
    data, text = metadata(folder), read(folder)
    assert (data.license, data.language, data.model_name) == ("mit", ["en"], "mine")
    found = [(r.metric_type, r.metric_name, r.metric_value, r.dataset_name) for r in data.eval_results]
    assert found == [("f1", "f1 of yes", 0.75, "held.csv"), ("accuracy", "accuracy", 0.8, "held.csv")]
    assert "| f1 of yes | 0.75 | 0.5 to 0.9 |  |" in text
    assert "| accuracy | 0.8 |  | 0.5 |" in text
    assert "a\\_b" in text
    assert "| lr | 2e-05 |" in text


def test_what_is_known_travels_through_every_export(golden, tmp_path):
    """From an export to another, in another format: the scores stay, the code is that of the new format."""
    model = bert.load(golden / "tiny_seqcls")
    model.extra["card"] = {"scores": SCORES}
    first = bert.save(model, tmp_path / "first")
    second = bert.save(bert.load(first), tmp_path / "second", format="onnx")
    assert "f1 of yes | 0.75" in read(second)
    assert "onnxruntime" in read(second)
    assert "transformers" not in read(second)
    assert read(bert.save(bert.load(first), tmp_path / "again" / "first")) == read(first)


def test_a_task_that_the_card_does_not_know_has_one(golden, tmp_path, monkeypatch):
    monkeypatch.setitem(prediction.TASKS, "word_count", "")
    model = bert.load(golden / "tiny_regression")
    model.extra = {"word_count": {"max_length": 32}}
    folder = bert.save(model, tmp_path / "mine")
    assert metadata(folder).pipeline_tag == "other"
    assert "word\\_count" in read(folder)
    assert "bert.load" in read(folder)


@pytest.mark.parametrize("content", [b"# Mine\n", b"\xff no UTF-8", b"edited"])
def test_a_changed_card_is_carried_along_and_never_replaced(golden, tmp_path, content):
    folder = bert.save(bert.load(golden / "tiny_seqcls"), tmp_path / "a")
    card = folder / "README.md"
    card.write_bytes(card.read_bytes().replace(b"To be written", content) if content == b"edited" else content)
    mine = card.read_bytes()
    for format in ("huggingface", "onnx"):
        assert (bert.save(bert.load(folder), tmp_path / format, format=format) / "README.md").read_bytes() == mine
    bert.save(bert.load(golden / "tiny_seqcls"), folder)  # over it
    assert card.read_bytes() == mine
    other = bert.load(folder)
    other.card = b"# Another\n"
    with refused("a/README.md", "was changed"):
        bert.save(other, folder)
    assert card.read_bytes() == mine


def test_a_card_with_other_line_ends_is_still_ours(golden, tmp_path):
    folder = bert.save(bert.load(golden / "tiny_seqcls"), tmp_path / "a")
    text = read(folder)
    (folder / "README.md").write_bytes(text.replace("\n", "\r\n").encode())
    assert model_card.changed(folder) is None
    assert read(bert.save(bert.load(folder), folder)) == text


HOSTILE = "a | <script>alert(1)</script>\n---\n# [x](y) `z` *b* \u2028"


def test_texts_of_users_stay_text(golden, tmp_path):
    """In names, labels, settings and data; the YAML gives them back, Markdown shows them."""
    model = bert.load(golden / "tiny_seqcls")
    model.labels = (HOSTILE, "- yes: {", "no")
    values = {HOSTILE: {"title": HOSTILE, "value": 1.0}}
    model.extra["card"] = {
        "training": {HOSTILE: HOSTILE},
        "scores": {"data": "x: [", "values": values},
        "base": HOSTILE,
    }
    folder = bert.save(model, tmp_path / "a # [b")
    text = read(folder)
    body = text.split("\n---\n", 1)[1]
    assert "<script>" not in body
    assert body.count("\n---\n") == 0
    rows = [line for line in body.splitlines() if line.startswith("|")]
    cells = [len(re.findall(r"(?<!\\)\|", row)) - 1 for row in rows]
    assert set(cells) == {2}
    data = metadata(folder)
    assert data.model_name == "a # [b"
    assert data.eval_results[0].dataset_name == "x: ["


@pytest.mark.parametrize(
    "facts", [3, [], {"scores": 3}, {"scores": {"values": {"f1": "x"}}}, {"training": [1]}], ids=str
)
def test_facts_of_another_form_count_as_none(golden, tmp_path, facts):
    model = bert.load(golden / "tiny_seqcls")
    model.extra["card"] = facts
    assert "## Scores" not in read(bert.save(model, tmp_path / "out"))


@pytest.mark.parametrize(("name", "format"), [("tiny_bert", "stablehlo"), *((name, "onnx") for name in PIPELINES)])
def test_the_code_for_programs_gives_what_the_library_gives(golden, tmp_path, monkeypatch, name, format):
    model = bert.load(golden / name)
    folder = bert.save(model, tmp_path / "out", format=format)
    (code,) = blocks(folder, "python")
    monkeypatch.chdir(folder)
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
    columns = list(names["columns"].values())
    ids, types, mask = (columns[i] for i in ((0, 2, 1) if format == "onnx" else (0, 1, 2)))
    want = model.outputs([ids], [types], [mask])
    theirs = onnx.output_names(model.parts) if format == "onnx" else {ours: ours for ours in want}
    for ours, value in want.items():
        np.testing.assert_allclose(np.asarray(names["outputs"][theirs[ours]]), value, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", PIPELINES)
def test_the_code_for_the_library_runs(golden, tmp_path, monkeypatch, name):
    folder = bert.save(bert.load(golden / name), tmp_path / "out")
    assert run(folder, "python", "bert.load", monkeypatch).startswith("[")


def test_a_classifier_with_columns_has_commands_that_run(golden, tmp_path):
    """The names of the columns are a user's, with quotes and blanks."""
    model = bert.load(golden / "tiny_seqcls")
    columns = {"text": ['it\'s $(a) "b"', "ü"], "max_length": 24, "threshold": 0.5}
    model.extra |= {"problem_type": "single_label_classification", "classification": columns}
    model.extra["files"] = {"text": ",".join(columns["text"])}
    folder = bert.save(model, tmp_path / "out")
    (code,) = blocks(folder, "bash")
    program = f'bert() {{ command=${{1//-/_}}; shift; {sys.executable} -m launch.$command "$@"; }}\n'
    where = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[3])}
    command = ["bash", "-ec", program + code]
    done = subprocess.run(command, cwd=folder, env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (answer,) = map(json.loads, (folder / "answers.jsonl").read_text().splitlines())
    assert answer["predicted"]["label"] in model.labels


@pytest.mark.slow
@pytest.mark.parametrize("task", [*PIPELINES, "bio_mrc"])
def test_the_code_for_transformers_runs(golden, tmp_path, monkeypatch, task):
    import_torch()
    model = bert.load(golden / ("tiny_tokcls" if task == "bio_mrc" else task))
    model.extra |= BIO if task == "bio_mrc" else {}
    assert run(bert.save(model, tmp_path / "out"), "python", "transformers", monkeypatch)
