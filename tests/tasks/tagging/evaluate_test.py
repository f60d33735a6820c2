"""Taggers on files: scores beside annotators, sentences tagged worst, tags as columns and lines, what is refused."""

import json

import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.prediction.tagging import TaggingOptions
from tasks.annotations.annotated_texts import AnnotationSettings
from tasks.annotations.tools import read_annotated
from tests.bert.prediction.table_model import GOLDEN, tagger

LABELS = ("O", "B-LOC", "I-LOC", "B-PER")
NAMES = {"new": "B-LOC", "york": "I-LOC", "paris": "B-LOC", "john": "B-PER"}
READING = TaggingOptions(max_length=16, window_step=6)
# Paris is a person to the file; the second sentence is right; nobody tagged the third's "in"; the fourth is all wrong.
COLUMNS = "john B-PER\nin O\nparis B-PER\n\nNew B-LOC\nYORK I-LOC\n\nin ?\nparis B-LOC\n\nnew O\nyork O\nparis O\n"


@pytest.fixture
def model():
    extra = READING.to_json() | {"files": {"tags": "-1", "scheme": "auto", "unheard": 1}}
    return tagger(LABELS, NAMES, extra=extra)


@pytest.fixture
def run(commands):
    return commands("tagging")


def test_scores_and_the_sentences_tagged_worst(run, model):
    path = run.write("held.txt", COLUMNS)
    found = run.evaluate(model, path, tags="1-")
    values = {name: score["value"] for name, score in found.values["scores"].items()}
    assert (values["n"], values["n_sentences"], values["accuracy"]) == (9, 4, pytest.approx(5 / 9))
    assert (values["f1"], values["f1:LOC"]) == (pytest.approx(3 / 5), pytest.approx(4 / 7))
    for name in ("accuracy", "f1", "f1:LOC", "cross_entropy"):
        score = found.values["scores"][name]
        assert 0 <= score["low"] <= score["value"] <= score["high"]
    worst = found.values["worst"]  # where all is right there is nothing to see
    assert [(row["place"], row["wrong"]) for row in worst] == [(f"{path}:11", 3), (f"{path}:1", 1)]
    assert (worst[1]["tags"][2], worst[1]["predicted"][2]) == ("B-PER", "B-LOC")
    lines = found.text.splitlines()
    assert lines[0].startswith(f"{path}: 4 rows read, 4 kept")
    assert lines[-1].split() == ["1", f"{path}:1", "paris/B-PER/B-LOC"]
    some = run.evaluate(model, path, tags="1-", metrics=("f1:LOC", "n"))
    assert list(some.values["scores"]) == ["f1:LOC", "n"]
    run.check_metrics(model, path, *values)
    with pytest.raises(InputError, match=r"--metrics is 'bleu'; .*f1.*accuracy"):
        run.check_metrics(model, path, "bleu")
    assert any(line.startswith("f1 ") and "lenient rule" in line for line in lines)
    assert run.evaluate(model, path, batch_size=1, tags="1-").values == found.values


def test_the_worst_sentences_have_the_id_of_the_file(run, model):
    rows = [{"id": "s1", "tokens": ["cat", "paris"], "tags": ["B-LOC", "O"]}, {"tokens": ["mat"], "tags": ["B-PER"]}]
    found = run.evaluate(model, run.write("held.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert [row.get("id") for row in found.values["worst"]] == ["s1", None]
    assert "held.jsonl:1 (id s1)  cat/B-LOC/O" in found.text


def test_each_type_of_entity_has_a_line_and_a_tagger_that_says_o_only_is_told(run, model):
    path = run.write("held.txt", COLUMNS)
    found = run.evaluate(model, path, tags="1-")
    assert found.values["classes"]["LOC"]["support"]["value"] == 2
    assert found.values["classes"]["PER"]["recall"]["value"] == 0.5
    assert found.values["constant_answer"] is None
    assert any(line.split()[:2] == ["LOC", "0.4000"] for line in found.text.splitlines())
    silent = run.evaluate(model, run.write("mat.txt", "mat O\ncat B-LOC\n\ncat O\n"))
    assert "the model answers O for all 3 words" in silent.text
    assert "O for all 3 words" in silent.values["constant_answer"]


def test_several_annotators_are_compared_one_by_one(run, model):
    path = run.write("crowd.txt", "in O O O\nparis B-LOC O B-LOC\n\njohn B-PER ? ?\n")
    values = {n: s["value"] for n, s in run.evaluate(model, path, tags="1-").values["scores"].items()}
    assert (values["annotator_best"], values["annotator_majority"]) == (1.0, 1.0)
    assert values["annotator_mean"] == pytest.approx((2 * 1 + 1 * 0 + 1 * 1) / 4)
    assert values["annotator_human"] == pytest.approx(1 / 3)
    only = run.evaluate(model, path, tags="1-", annotators="2").values["scores"]
    assert (only["n_sentences"]["value"], only["f1"]["value"]) == (1, 0.0)


def test_a_tag_that_the_model_lacks_is_refused_by_its_place(run, model):
    path = run.write("held.txt", "in O\n\nparis B-CITY\n")
    with pytest.raises(InputError, match=r"held\.txt:3: .*'paris' .*'B-CITY'"):
        run.evaluate(model, path)
    assert run.predict(model, path, "out.conll", "conll") == {"out.conll": "in O\n\nparis B-LOC\n"}


def test_columns_hold_every_word_once(run, model):
    """300 words in windows of 16 tokens, words of nothing visible, no last line end; read again they are the same."""
    long = ["new", "york", "\u200b", "9/7/1992", "in", "x" * 120, "\u2028a", "paris", "U.S.", "caf\u00e9"] * 30
    path = run.write("in.txt", "\n".join([*(f"{word} O" for word in long), "", "", "john B-PER"]))
    written = run.predict(model, path, "out.conll", "conll")
    rows = written["out.conll"].split("\n")
    assert [row.split(" ")[0] for row in rows] == [*long, "", "john", ""]
    tags = [row.split(" ")[1] for row in rows[:300]]
    assert tags == ["B-LOC", "I-LOC", "O", "O", "O", "O", "O", "B-LOC", "O", "O"] * 30
    again = run.read(model, run.write("again.txt", written["out.conll"]), "needed")
    assert [row.words for row in again.rows] == [tuple(long), ("john",)]
    scores = run.evaluate(model, run.write("again.txt", written["out.conll"])).values
    assert (scores["scores"]["f1"]["value"], scores["worst"]) == (1.0, [])
    assert run.predict(model, path, "out.conll", "conll", batch_size=1) == written


def test_lines_hold_tags_and_entities(run, model):
    rows = [{"id": 7, "tokens": ["in", "New", "York"]}, {"tokens": []}, {"tokens": ["New York", "john"]}]
    path = run.write("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    written = run.predict(model, path, "out.jsonl", "jsonl")["out.jsonl"]
    told = [json.loads(line) for line in written.splitlines()]
    assert [one["tokens"] for one in told] == [row["tokens"] for row in rows]
    assert [one.get("id") for one in told] == ["7", None, None]
    assert told[0]["tags"] == ["O", "B-LOC", "I-LOC"]
    assert told[0]["entities"] == [{"type": "LOC", "start": 1, "end": 3, "text": "New York"}]
    assert told[0]["probabilities"] == pytest.approx([0.9] * 3)
    assert "shares" not in told[0]
    detailed = run.predict(model, path, "out.jsonl", "jsonl", details=True)["out.jsonl"].splitlines()[0]
    assert list(json.loads(detailed)["shares"][0]) == list(LABELS)
    with pytest.raises(InputError, match=r"in\.jsonl:2: .*no words, .*jsonl"):
        run.predict(model, path, "out.conll", "conll")
    path = run.write("in.jsonl", json.dumps(rows[2]))
    with pytest.raises(InputError, match=r"in\.jsonl.*'New York' .*jsonl"):
        run.predict(model, path, "out.conll", "conll")


def test_tags_of_any_other_kind(run):
    model = tagger(("DT", "NN"), {"the": "DT"}, "NN", extra=READING.to_json() | {"files": {"scheme": "plain"}})
    path = run.write("held.txt", "the DT\ncat NN\nthe NN\n")
    found = run.evaluate(model, path)
    assert found.values["scores"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert "f1" not in found.values["scores"]
    written = run.predict(model, path, "out.jsonl", "jsonl")["out.jsonl"]
    assert "entities" not in json.loads(written)


def test_what_does_not_fit_is_refused(run, model):
    path = run.write("held.txt", COLUMNS)
    with pytest.raises(InputError, match=r"format is 'csv'; .* conll, jsonl"):
        run.predict(model, path, "out.csv", "csv")
    with pytest.raises(InputError, match=r"--documents .*tagging; .*--tags"):
        run.evaluate(model, path, documents="x", tags=None)


def test_a_model_that_others_trained_is_scored_and_predicts(run):
    tiny = bert.load(GOLDEN / "tiny_tokcls")
    path = run.write("held.txt", "the O\ncat B\nsat I\n\nmary O\n")
    found = run.evaluate(tiny, path, batch_size=2)
    assert found.values["scores"]["n"]["value"] == 4
    rows = run.predict(tiny, path, "out.conll", "conll", batch_size=2)["out.conll"].split("\n")
    assert [row.split(" ")[0] for row in rows] == ["the", "cat", "sat", "", "mary", ""]


# ---- for annotation tools ----

TEXT = "😀 john\r\nin New  York, paris\u0301 東京"  # tokens: john, new york, paris
ENTITIES = [(2, 6, "PER"), (11, 20, "LOC"), (22, 28, "LOC")]


@pytest.mark.parametrize("tool", ["doccano", "label_studio", "prodigy", "brat"])
@pytest.mark.parametrize("source", ["doccano", "label_studio", "brat", "columns"])
def test_entities_become_spans_of_tools(run, model, tool, source):
    """Whatever the input was, text, ids and spans are those of the text; of words, of the words joined by blanks."""
    text, wanted = TEXT, ENTITIES
    if source == "columns":
        text, wanted = "😀 john New York 東京", [(2, 6, "PER"), (7, 15, "LOC")]
        path = run.write("in.conll", "".join(f"{word} O\n" for word in text.split()))
    elif source == "brat":
        (run.folder / "in").mkdir()
        run.write("in/d7.txt", text)
        run.write("in/d7.ann", "")
        path = str(run.folder / "in")
    else:
        row = {"id": "d7", "text": text} if source == "doccano" else {"id": "d7", "data": {"text": text}}
        path = run.write("in.jsonl", json.dumps(row) + "\n")
    evaluator = run.evaluator(model)
    target = run.folder / "out" / {"label_studio": "a.json", "brat": "a"}.get(tool, "a.jsonl")
    evaluator.write_predictions(target, evaluator.read(path, split="", labelled="no"), tool)
    if tool == "label_studio":
        target.write_text(target.read_text().replace('"predictions"', '"annotations"'))
    (found,) = read_annotated(str(target), AnnotationSettings()).texts
    assert (found.text, [tuple(span) for _, spans in found.annotations for span in spans]) == (text, wanted)
    assert found.id == {"columns": "000001" if tool == "brat" else ""}.get(source, "d7")


def test_scores_of_spans_are_the_probabilities_of_their_words(run, model):
    path = run.write("in.jsonl", json.dumps({"data": {"text": "in New York"}}) + "\n")
    evaluator = run.evaluator(model)
    evaluator.write_predictions(run.folder / "a.json", evaluator.read(path, split="", labelled="no"), "label_studio")
    (task,) = json.loads((run.folder / "a.json").read_text())
    (prediction,) = task["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("tables", pytest.approx(0.9))
    assert [region["score"] for region in prediction["result"]] == pytest.approx([0.9])


def test_what_tools_and_columns_cannot_show_is_refused(run, model):
    plain = tagger(("DT", "NN"), {"the": "DT"}, "NN", extra=READING.to_json() | {"files": {"scheme": "plain"}})
    path = run.write("in.conll", "the DT\n")
    with pytest.raises(InputError, match=r"no entities.* prodigy .*jsonl"):
        run.predict(plain, path, "out.jsonl", "prodigy")
    blank = tagger(("O", "B-a place", "I-a place"), {}, extra=READING.to_json())
    with pytest.raises(InputError, match=r"'B-a place' has a blank .*jsonl"):
        run.predict(blank, path, "out.conll", "conll")


OTHERS = ("O", "B-LOC", "I-LOC", "E-LOC", "S-LOC", "S-PER", "B-PER", "[PAD]")


def test_labels_of_other_schemes_are_entities_and_are_scored_in_iob2(run):
    """As of many models of others; what they share out among B and S, or I and E, is one probability."""
    tags = {"new": "B-LOC", "york": "E-LOC", "paris": "S-LOC", "john": "S-PER", "mat": "[PAD]"}
    model = tagger(OTHERS, tags, sure=0.65)
    (told,) = model.predict(["In New York, John in Paris."])
    assert told["tags"][1:3] == ["B-LOC", "E-LOC"]
    assert [(one["type"], one["text"]) for one in told["entities"]] == [
        ("LOC", "New York"), ("PER", "John"), ("LOC", "Paris"),
    ]  # fmt: skip
    path = run.write("held.txt", "new B-LOC\nyork I-LOC\nparis B-LOC\nmat O\n\njohn B-PER\nin O\n")
    values = {name: one["value"] for name, one in run.evaluate(model, path).values["scores"].items()}
    assert (values["accuracy"], values["f1"], values["strict_f1"], values["n"]) == (1, 1, 1, 6)
    # -ln of each word's share in IOB2: B-LOC (B and S) .70, I-LOC (I and E) .70, O ([PAD], too) .70, B-PER .70
    assert values["cross_entropy"] == pytest.approx(-np.log(0.7), abs=1e-6)
    same = run.write("ends.txt", "new B-LOC\nyork E-LOC\nparis S-LOC\nmat O\n\njohn S-PER\nin O\n")
    assert run.evaluate(model, same).values["scores"] == run.evaluate(model, path).values["scores"]
    written = run.predict(model, same, "out.conll", "conll")["out.conll"]
    assert written == "new B-LOC\nyork I-LOC\nparis B-LOC\nmat O\n\njohn B-PER\nin O\n"


def test_plain_tags_stay_as_they_are_in_any_letters(run):
    extra = READING.to_json() | {"files": {"scheme": "plain"}}
    model = tagger(("O", "B-LOC", "E-LOC", "S-PER"), {"new": "B-LOC", "york": "E-LOC", "john": "S-PER"}, extra=extra)
    text = "new B-LOC\nyork E-LOC\n\njohn S-PER\n"
    path = run.write("held.txt", text)
    assert run.evaluate(model, path).values["scores"]["accuracy"]["value"] == 1
    assert run.predict(model, path, "out.conll", "conll") == {"out.conll": text}
