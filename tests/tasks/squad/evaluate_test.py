"""Start-and-end answers on files: official scores, the official files, questions without a passage, what is refused."""

import dataclasses
import json

import pytest

import bert
from bert.errors import InputError
from bert.prediction.squad import SquadOptions
from tasks.metrics import span_metrics
from tests.bert.prediction.table_model import GOLDEN, answerer

# The words paris and city are answers; no answer is worth 6, and a question may have none.
READING = SquadOptions(max_length=24, window_step=6, max_question=8, no_answer=True, threshold=1.0, best=3)
CONTEXT = "In  PARIS \r\n the city . \N{HUGGING FACE} caf\u00e9 in France"


@pytest.fixture
def model():
    return answerer({"paris": 8.0, "city": 3.0}, {"paris": 2.5, "city": 2.0}, nothing=6.0, extra=READING.to_json())


@pytest.fixture
def run(commands):
    return commands("squad")


def squad(*rows):
    """(id, context, answers as texts of it) each."""
    paragraphs = [
        {"context": context, "qas": [{"id": id, "question": "Where?", "answers": [
            {"text": text, "answer_start": context.index(text)} for text in answers]}]}
        for id, context, answers in rows
    ]  # fmt: skip
    return {"version": "2", "data": [{"title": "t", "paragraphs": paragraphs}]}


FILE = squad(
    ("right", CONTEXT, ["PARIS", "PARIS \r\n the city"]),  # odds 6 - 10.5, far below the threshold
    ("late", "a " * 60 + "city of mary", ["city of mary"]),  # 5 and 6: the odds are 1, and that is not above it
    ("silent", "the mat is in France", ["France"]),
    ("none", "the mat is in France", []),
    ("wrong", "john in paris", []),
)
SAID = {"right": "PARIS", "late": "city", "silent": "", "none": "", "wrong": "paris"}


def test_official_scores_at_the_threshold_of_training(run, model):
    path = run.write("dev.json", FILE)
    found = run.evaluate(model, path)
    values = {name: score["value"] for name, score in found.values["scores"].items()}
    assert values == {
        "exact": 40.0, "f1": pytest.approx(100 * (1 + 0.5 + 0 + 1 + 0) / 5), "total": 5, "threshold": 1.0,
        "HasAns_exact": pytest.approx(100 / 3), "HasAns_f1": pytest.approx(50), "HasAns_total": 3,
        "NoAns_exact": 50.0, "NoAns_f1": 50.0, "NoAns_total": 2,
    }  # fmt: skip
    for name in ("f1", "HasAns_exact", "NoAns_f1"):
        assert 0 <= found.values["scores"][name]["low"] <= values[name] <= found.values["scores"][name]["high"] <= 100
    assert [row["id"] for row in found.values["worst"]] == ["silent", "wrong", "late"]  # none that is right
    assert found.values["worst"][2]["predicted"]["answer"] == "city"
    lines = found.text.splitlines()
    assert "(id late)" in lines[-1]
    some = run.evaluate(model, path, metrics=("NoAns_f1", "threshold"))
    assert {name: score["value"] for name, score in some.values["scores"].items()} == {
        "NoAns_f1": 50.0, "threshold": 1.0
    }  # fmt: skip
    run.check_metrics(model, path, *values)
    with pytest.raises(InputError, match=r"--metrics is 'best_f1'; .*exact, f1.*NoAns_exact.*threshold"):
        run.check_metrics(model, path, "best_f1")
    assert lines[0].startswith(f"{path}: 5 rows read, 5 kept")
    assert "answers none, predicted paris" in lines[-2]
    assert "answers city of mary, predicted city" in lines[-1]
    assert run.evaluate(model, path, batch_size=1).values == found.values


def test_a_reader_that_answers_no_question_is_told(run, model):
    path = run.write("dev.json", squad(("a", "the mat is in France", ["France"]), ("b", "the mat", [])))
    found = run.evaluate(model, path)
    assert "nothing for all 2 questions" in found.text
    assert run.evaluate(model, run.write("dev.json", FILE)).values["constant_answer"] is None


def test_files_without_unanswered_questions_have_the_scores_of_squad_1(run, model):
    model.extra = dataclasses.replace(READING, no_answer=False).to_json()
    path = run.write("dev.json", squad(("a", CONTEXT, ["PARIS"]), ("b", "the mat", ["mat"])))
    found = run.evaluate(model, path)
    assert list(found.values["scores"]) == ["exact", "f1", "total"]
    assert found.values["scores"]["exact"]["value"] == 50.0
    assert "HasAns" in run.evaluate(model, run.write("dev.json", FILE)).text  # nothing may be silent about these


def unplaced(*rows):
    """(id, context, answers as (text, answer_start or None)) each."""
    file = squad(*((id, context, []) for id, context, _ in rows))
    for paragraph, (_, _, answers) in zip(file["data"][0]["paragraphs"], rows, strict=True):
        paragraph["qas"][0]["answers"] = [{"text": text} | ({} if start is None else {"answer_start": start})
                                          for text, start in answers]  # fmt: skip
    return file


def test_answers_without_a_position_are_scored_and_told(run, model):
    """Half of the questions have an answer that stands twice and no answer_start: a half is right, of 32."""
    rows = [(f"w{i}", "the city and paris and the city", [("the city", None)]) for i in range(16)]
    rows += [(f"r{i}", "in paris", [("paris", 3)]) for i in range(16)]
    model.extra = dataclasses.replace(READING, no_answer=False).to_json()
    path = run.write("dev.json", unplaced(*rows))
    found = run.evaluate(model, path)
    assert {name: score["value"] for name, score in found.values["scores"].items()} == {
        "exact": 50.0, "f1": 50.0, "total": 32,
    }  # fmt: skip
    told = found.values["rows"]
    assert (told["read"], told["kept"], told["dropped"]) == (32, 32, {})
    (note,) = [note for note in told["notes"] if "could not be trained on" in note]
    assert "more than once" in note
    assert ": 16 (first " in note
    assert note in found.text


def test_golds_that_are_left_out_are_told(run, model):
    """Those of annotators that training left out, and of several spans all but the first."""
    spans = [{"annotator": "anna", "spans": [[3, 8], [13, 16]]}, {"annotator": "ben", "spans": [[0, 2]]}]
    row = {"id": "a", "question": "Where?", "context": "in paris and mat", "annotations": spans}
    model.extra["files"] = {"annotators": "anna"}
    found = run.evaluate(model, run.write("dev.jsonl", json.dumps(row) + "\n"))
    assert found.values["scores"]["exact"]["value"] == 100.0
    notes = found.values["rows"]["notes"]
    assert [sum(word in note for note in notes) for word in ("annotators anna leaves golds out: 1", "several")] == [
        1,
        1,
    ]
    assert all(note in found.text for note in notes)


def test_f1_of_a_language_without_blanks_counts_characters_and_says_so(run, model):
    """Said is "paris", of which the Chinese gold has the letters among others; the English passage stays official."""
    model.extra = dataclasses.replace(READING, no_answer=False).to_json()
    chinese = "\u6211 \u5011 \u5728 paris \u7684 \u5bb6 \u88e1 \u5e02"
    gold = chinese[6:13]  # paris and the character behind it
    file = unplaced(
        ("zh", chinese, [(gold.replace(" ", ""), None)]), ("en", "in paris \u5e02", [("paris\u5e02", None)])
    )
    found = run.evaluate(model, run.write("dev.json", file))
    assert found.values["scores"]["f1"]["value"] == pytest.approx(100 * (2 / 3 + 0) / 2)
    assert {row["id"]: row["f1"] for row in found.values["worst"]} == {"zh": pytest.approx(200 / 3), "en": 0}
    (note,) = [note for note in found.values["rows"]["notes"] if "characters as tokens" in note]
    assert ": 1 (first " in note
    assert note in found.text
    assert "characters" not in run.evaluate(model, run.write("dev.json", FILE)).text


def test_the_official_files_hold_every_question_in_the_files_order(run, model):
    """Also those with nothing to read; every number is one, as the official script wants it."""
    rows = [("empty", "", []), ("blank", "  ", []), ("zero", "\u200b", [])]
    file = squad(*rows)
    file["data"] += FILE["data"]
    written = run.predict(model, run.write("dev.json", file), "predictions.json", "json")
    said, candidates, odds = (
        json.loads(written[name], parse_constant=pytest.fail)
        for name in ("predictions.json", "nbest_predictions.json", "null_odds.json")
    )
    order = ["empty", "blank", "zero", *SAID]
    assert list(said) == list(candidates) == list(odds) == order
    assert said == {"empty": "", "blank": "", "zero": ""} | SAID
    assert [odds[id] for id in order[3:7]] == [-4.5, 1.0, 24.0, 24.0]
    assert all(odds[id] > 1e6 for id in order[:3])
    assert candidates["empty"] == [{"text": "", "probability": 1.0}]
    for id, some in candidates.items():
        assert sum(one["probability"] for one in some) == pytest.approx(1)
        assert len(some) <= READING.best + 1
        assert said[id] in [one["text"] for one in some]
    golds = {"right": ["PARIS"], "late": ["city of mary"], "silent": ["France"], "none": [], "wrong": []}
    scores = span_metrics.squad_scores(golds, said, odds, 1.0)
    assert scores["exact"] == run.evaluate(model, run.write("dev.json", FILE)).values["scores"]["exact"]["value"]
    assert scores["best_exact"] is not None


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("dev_predictions.json", {"dev_predictions.json", "dev_nbest_predictions.json", "dev_null_odds.json"}),
        ("mine.json", {"mine.json", "nbest_predictions_mine.json", "null_odds_mine.json"}),
    ],
)
def test_names_of_the_official_files(run, model, name, names):
    path = run.write("dev.json", FILE)
    assert set(run.predict(model, path, name, "json")) == names
    model.extra = dataclasses.replace(READING, no_answer=False).to_json()
    for file in (run.folder / "out").iterdir():
        file.unlink()
    assert set(run.predict(model, path, name, "json")) == {one for one in names if "null_odds" not in one}


def test_lines_say_where_the_answer_stands(run, model):
    path = run.write("dev.json", FILE)
    (text,) = run.predict(model, path, "out.jsonl", "jsonl").values()
    rows = [json.loads(line) for line in text.splitlines()]
    assert {row["id"]: row["answer"] for row in rows} == SAID
    assert set(rows[0]) == {"id", "answer", "start", "end", "probability", "null_odds"}
    assert CONTEXT[rows[0]["start"] : rows[0]["end"]] == "PARIS"
    assert (rows[2]["start"], rows[2]["end"]) == (None, None)
    (text,) = run.predict(model, path, "out.jsonl", "jsonl", details=True).values()
    assert len(json.loads(text.splitlines()[0])["candidates"]) == 4


def test_a_question_without_room_is_cut_and_told_by_its_id(run, model, caplog):
    model.extra = SquadOptions(max_length=20, window_step=14, max_question=8).to_json()
    file = FILE | {"data": [*FILE["data"]]}
    file["data"][0]["paragraphs"][1]["qas"][0]["question"] = "where where where where?"
    run.predict(model, run.write("dev.json", file), "out.jsonl", "jsonl")
    assert "longer than max_question, 3 tokens, and were cut (first" in caplog.text
    assert "question late)" in caplog.text


def test_what_does_not_fit_is_refused(run, model):
    path = run.write("dev.json", FILE)
    with pytest.raises(InputError, match=r"format is 'csv'; .* json, jsonl"):
        run.predict(model, path, "out.csv", "csv")
    with pytest.raises(InputError, match=r"--tags .*squad; .*--annotators"):
        run.evaluate(model, path, tags="1", annotators=None, text=None)
    evaluator = run.evaluator(model)
    examples = evaluator.read(path, split="test", labelled="no")
    with pytest.raises(InputError, match=r"x\.json: .*written .*another name"):
        evaluator.write_predictions(run.folder / "dev.json" / "x.json", examples, "jsonl")
    assert not list(run.folder.glob("**/.*.unfinished-*"))


def test_a_model_that_others_trained_is_scored_and_predicts(run):
    tiny = bert.load(GOLDEN / "tiny_qa")
    path = run.write("dev.json", squad(("a", "the cat sat", ["cat"]), ("b", "mary runs", ["mary"])))
    found = run.evaluate(tiny, path, batch_size=2)
    assert found.values["scores"]["total"]["value"] == 2
    written = run.predict(tiny, path, "predictions.json", "json", batch_size=2)
    assert list(json.loads(written["predictions.json"])) == ["a", "b"]
