"""Predictions in the order of the model's uncertainty: each task's value, the votes' beside it, formats, the order."""

import csv
import json
import math

import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.prediction.bio_mrc import BioMrcOptions
from bert.prediction.classification import ClassificationOptions
from bert.prediction.squad import SquadOptions
from bert.prediction.tagging import TaggingOptions
from tests.bert.prediction.table_model import GOLDEN, TableModel, answerer, tagger

TEXTS = ["the cat", "a mat on it", "paris", "the book is good and the movie is not", "mary"]
WINDOWS = {"max_length": 24, "window_step": 6, "max_question": 8}
SURE, UNSURE = (0.9, 0.05, 0.05), (0.5, 0.3, 0.2)


def nats(p):
    return -sum(share * math.log(share) for share in p)


def apart(p):
    return 1 - sum(share**2 for share in p)


def lines(written: dict[str, str], name: str) -> list[dict]:
    return [json.loads(line) for line in written[name].splitlines()]


@pytest.fixture(scope="module")
def classifier():
    model = bert.load(GOLDEN / "tiny_seqcls")
    model.extra = ClassificationOptions("class", ("text",), 16).to_json() | {"files": {"text": "text"}}
    return model


@pytest.fixture
def unsure_at_mats():
    """A token labeller that is sure of all tokens but "mat"."""
    like = tagger(("B", "I", "O"), {})
    extra = TaggingOptions(max_length=16, window_step=6).to_json() | BioMrcOptions(**WINDOWS).to_json()

    def one(task):
        extras = {task: extra[task]}
        return TableModel(like, {"mat": np.log(UNSURE)}, np.log(SURE), labels=like.labels, extra=extras)

    return one


@pytest.mark.parametrize(("measure", "of", "down"), [("entropy", nats, True), ("margin", None, False)])
def test_rows_of_a_table_in_the_order_of_a_column(commands, classifier, measure, of, down):
    run = commands("classification")
    path = run.write("in.csv", "n,text,margin\n" + "".join(f"{i},{text},old\n" for i, text in enumerate(TEXTS)))
    written = run.predict(classifier, path, "out.csv", "csv", rank=measure)["out.csv"]
    rows = list(csv.DictReader(written.splitlines()))
    p_N = [[float(row[f"p_{label}"]) for label in classifier.labels] for row in rows]
    wanted = [of(p) if of else sorted(p)[-1] - sorted(p)[-2] for p in p_N]
    assert [float(row[measure]) for row in rows] == pytest.approx(wanted, abs=1e-5)
    assert wanted == sorted(wanted, reverse=down)
    assert sorted(row["n"] for row in rows) == list("01234") != [row["n"] for row in rows]
    assert [TEXTS[int(row["n"])] for row in rows] == [row["text"] for row in rows]
    top = run.predict(classifier, path, "out.csv", "csv", rank=measure, top=2)["out.csv"]
    assert top.splitlines() == written.splitlines()[:3]
    told = lines(run.predict(classifier, path, "out.csv", "jsonl", rank=measure), "out.csv")
    by_python = classifier.predict(TEXTS, measure=measure)
    for row, line in zip(rows, told, strict=True):
        assert line["n"] == row["n"]
        assert line["predicted"] == by_python[int(row["n"])]


def test_several_labels_are_the_mean_of_each_of_them(commands, classifier):
    model = bert.load(GOLDEN / "tiny_seqcls")
    model.extra = {**classifier.extra, "problem_type": "multi_label_classification"}
    for row in model.predict(TEXTS, measure="entropy"):
        assert row["entropy"] == pytest.approx(np.mean([nats((p, 1 - p)) for p in row["probabilities"].values()]))


def test_a_number_has_no_uncertainty(commands, classifier):
    model = bert.load(GOLDEN / "tiny_seqcls")
    model.extra = {**classifier.extra, "problem_type": "regression"}
    run = commands("classification")
    with pytest.raises(InputError, match=r"numbers .*entropy"):
        run.predict(model, run.write("in.csv", "text\nthe cat\n"), "out.csv", "csv", rank="entropy")


def test_the_annotators_disagreement_stands_beside_that_of_the_model(commands, classifier):
    run, (a, b, _) = commands("classification"), classifier.labels
    votes = [f'"{a},{a},{b}"', f'"{a},{a}"', f'"{b},{a}"']
    path = run.write("in.csv", "text,label\n" + "".join(f"{t},{v}\n" for t, v in zip(TEXTS, votes, strict=False)))
    model = bert.load(GOLDEN / "tiny_seqcls")
    model.extra = {**classifier.extra, "files": {"text": "text", "label": "label", "votes": True}}
    written = run.predict(model, path, "out.csv", "csv", rank="disagreement")["out.csv"]
    rows = list(csv.DictReader(written.splitlines()))
    observed = {row["text"]: float(row["observed_disagreement"]) for row in rows}
    assert observed == pytest.approx(dict(zip(TEXTS, [1 - 5 / 9, 0, 0.5], strict=False)), abs=1e-6)
    for row in rows:
        p = [float(row[f"p_{label}"]) for label in model.labels]
        assert float(row["disagreement"]) == pytest.approx(apart(p), abs=1e-5)
    unlabelled = run.write("in.csv", "text\nthe cat\n")
    assert "observed" not in run.predict(model, unlabelled, "out.csv", "csv", rank="disagreement")["out.csv"]
    assert "observed" not in run.predict(model, path, "out.csv", "csv", rank="entropy")["out.csv"]


def test_sentences_by_the_mean_of_their_words(commands, unsure_at_mats):
    """In windows, too; columns keep the order alone, and the votes of two annotators are words' shares."""
    run, model = commands("tagging"), unsure_at_mats("tagging")
    long = ["the"] * 29 + ["mat"]
    rows = [
        {"tokens": ["the", "cat"], "annotations": [{"annotator": "a", "tags": ["B", "O"]}]},
        {"tokens": ["the", "mat"], "annotations": [{"annotator": "a", "tags": ["B", "O"]},
                                                   {"annotator": "b", "tags": ["O", None]}]},
        {"tokens": []},
        {"tokens": long},
    ]  # fmt: skip
    path = run.write("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    told = lines(run.predict(model, path, "out.jsonl", "jsonl", rank="entropy"), "out.jsonl")
    assert [len(one["tokens"]) for one in told] == [2, 30, 2, 0]
    sure, unsure = nats(SURE), nats(UNSURE)
    wanted = [(sure + unsure) / 2, (29 * sure + unsure) / 30, sure]
    assert [one["entropy"] for one in told[:3]] == pytest.approx(wanted)
    assert told[3]["entropy"] is None
    told = lines(run.predict(model, path, "out.jsonl", "jsonl", rank="disagreement", top=3), "out.jsonl")
    assert [one["disagreement"] for one in told][::2] == pytest.approx([(apart(SURE) + apart(UNSURE)) / 2, apart(SURE)])
    assert [one["observed_disagreement"] for one in told] == [0.25, None, 0]
    path = run.write("in.txt", "the\ncat\n\nmat\n")
    written = run.predict(model, path, "out.jsonl", "conll", rank="margin")
    assert written == {"out.jsonl": "mat B\n\nthe B\ncat B\n"}


def test_passages_by_the_mean_of_their_tokens(commands, unsure_at_mats):
    run, model = commands("bio_mrc"), unsure_at_mats("bio_mrc")
    marks = [{"annotator": "a", "spans": [[4, 7]]}, {"annotator": "b", "spans": []}]
    rows = [{"id": "sure", "question": "Who sat on the mat?", "context": "the cat"},
            {"id": "unsure", "question": "Who?", "context": "the mat", "annotations": marks}]  # fmt: skip
    path = run.write("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    told = lines(run.predict(model, path, "out.jsonl", "jsonl", rank="disagreement"), "out.jsonl")
    assert [one["id"] for one in told] == ["unsure", "sure"]
    wanted = [(apart(SURE) + apart(UNSURE)) / 2, apart(SURE)]
    assert [one["disagreement"] for one in told] == pytest.approx(wanted)
    assert [one["observed_disagreement"] for one in told] == [0.25, None]
    texts = run.predict(model, path, "out.jsonl", "json", rank="margin")["out.jsonl"]
    assert list(json.loads(texts)) == ["unsure", "sure"]


def test_a_text_of_an_annotation_tool_is_never_divided(commands, unsure_at_mats):
    """Each of its labels is a question; the first is the text with the least sure of them, with all its spans."""
    run, model = commands("bio_mrc"), unsure_at_mats("bio_mrc")
    model.extra["files"] = {"questions": '{"A": "Who?", "B": "Where?"}'}
    path = run.write("in.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in ("the cat", "the mat", "cat")))
    written = run.predict(model, path, "out.jsonl", "doccano", rank="entropy", top=2)
    told = lines(written, "out.jsonl")
    assert [one["text"] for one in told] == ["the mat", "the cat"]
    assert [sorted(label for *_, label in one["label"]) for one in told] == [["A", "A", "B", "B"]] * 2
    assert len(lines(run.predict(model, path, "out.jsonl", "jsonl", rank="entropy", top=2), "out.jsonl")) == 2


def test_answers_by_their_candidates_and_no_answer(commands):
    options = SquadOptions(**WINDOWS, no_answer=True, best=3)
    model = answerer({"paris": 8.0, "city": 3.0}, {"paris": 2.5, "city": 2.0}, nothing=6.0, extra=options.to_json())
    run = commands("squad")
    contexts = {"sure": "in paris", "tie": "paris and paris", "empty": ""}
    rows = [{"id": id, "question": "Where?", "context": text, "answers": []} for id, text in contexts.items()]
    path = run.write("in.json", {"data": rows})
    told = lines(run.predict(model, path, "out.jsonl", "jsonl", rank="entropy", details=True), "out.jsonl")
    assert [one["id"] for one in told] == ["tie", "sure", "empty"]
    for one in told:
        shares = [candidate["probability"] for candidate in one["candidates"]]
        assert one["entropy"] == pytest.approx(nats(shares), abs=1e-9)
    assert told[2]["entropy"] == 0
    told = lines(run.predict(model, path, "out.jsonl", "jsonl", rank="margin"), "out.jsonl")
    assert [(one["id"], "candidates" in one) for one in told] == [("tie", False), ("sure", False), ("empty", False)]
    assert told[0]["margin"] == pytest.approx(0)
