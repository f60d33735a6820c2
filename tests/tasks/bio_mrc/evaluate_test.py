"""B/I/O spans on files: scores beside annotators, passages read worst, spans as lines and for MultiSpanQA's scorer."""

import json
import math

import pytest

from bert.errors import InputError
from bert.prediction.bio_mrc import BioMrcOptions
from tasks.annotations.annotated_texts import AnnotationSettings
from tasks.annotations.tools import read_annotated, written
from tasks.questions.annotated_questions import predicted_texts
from tasks.questions.question_rows import Question
from tests.bert.prediction.table_model import tagger

READING = BioMrcOptions(max_length=24, window_step=6, max_question=8)
CONTEXT = "In  PARIS \r\n the City . \N{HUGGING FACE} caf\u00e9 in France"


@pytest.fixture
def model():
    """paris and france begin a span, city goes on with one; its labels stand in an order of their own."""
    return tagger(("O", "I", "B"), {"paris": "B", "france": "B", "city": "I", "the": "I"}, extra=READING.to_json())


@pytest.fixture
def run(commands):
    return commands("bio_mrc")


def asked(id, context, **spans):
    """Annotator -> texts that he marked."""
    marks = [
        {"annotator": name, "spans": [[context.index(text), context.index(text) + len(text)] for text in texts]}
        for name, texts in spans.items()
    ]
    return {"id": id, "question": "Where?", "context": context, "annotations": marks}


ROWS = [
    asked("right", CONTEXT, anna=["PARIS \r\n the City", "France"], ben=["PARIS \r\n the City", "France"]),
    asked("half", "in paris and france", anna=["paris"], ben=[]),
    asked("long", "a " * 60 + "in france", anna=["france"]),
]


@pytest.fixture
def path(run):
    return run.write("held.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))


def test_scores_and_the_passages_read_worst(run, model, path):
    found = run.evaluate(model, path)
    values = {name: score["value"] for name, score in found.values["scores"].items()}
    assert (values["n"], values["exact_match"]) == (3, pytest.approx(2 / 3))
    # of "half" both answers are wrong: two are predicted, the majority of anna's one and ben's none is none
    assert values["exact_precision"] == pytest.approx(3 / 5)
    assert values["exact_recall"] == pytest.approx(3 / 4)
    interval = found.values["scores"]["exact_f1"]
    assert interval["low"] <= interval["value"] <= interval["high"] < 1.01
    assert values["annotator_human"] == pytest.approx(4 / 5)  # anna has three spans there, ben two of them
    # anna has 2, 1 and 1 spans, of which all are found; of her 4 and ben's 2 there are 5 and 4 predicted
    each = found.values["annotators"]
    assert {name: one["passages"] for name, one in each.items()} == {"anna": 3, "ben": 2}
    assert each["anna"]["value"] == pytest.approx(8 / 9)
    assert each["ben"]["value"] == pytest.approx(4 / 6)
    assert "F1 with each annotator (passages): anna 0.889 (3), ben 0.667 (2)" in found.text
    tokens = {"right": 12, "half": 4, "long": 62}
    wrong = {"right": 0, "half": 1 + 0.5, "long": 0}  # france; half of the votes for paris
    sure, other = -math.log(0.9), -math.log(0.05)
    losses = {id: (tokens[id] - wrong[id]) * sure + wrong[id] * other for id in tokens}
    assert values["n_tokens"] == sum(tokens.values())
    assert values["cross_entropy_per_example"] == pytest.approx(sum(losses.values()) / 3, rel=1e-5)
    assert values["cross_entropy"] == pytest.approx(sum(losses.values()) / sum(tokens.values()), rel=1e-5)
    assert [row["id"] for row in found.values["worst"]] == ["long", "half", "right"]
    assert f"{path}:2 (id half)" in found.text
    some = run.evaluate(model, path, metrics=("kl", "f1"))
    assert list(some.values["scores"]) == ["kl", "f1"]
    run.check_metrics(model, path, *values)
    with pytest.raises(InputError, match=r"--metrics is 'bleu'; .*cross_entropy.*f1"):
        run.check_metrics(model, path, "bleu")
    assert found.values["worst"][1]["loss"] == pytest.approx(losses["half"], rel=1e-5)
    assert found.values["worst"][1]["marked"] == {"anna": ["paris"], "ben": []}
    assert "marked paris, predicted paris | france" in found.text
    assert found.text.startswith(f"{path}: 3 rows read, 3 kept")
    assert run.evaluate(model, path, batch_size=1).values == found.values
    assert run.evaluate(model, path, annotators="ben").values["scores"]["n"]["value"] == 2


def test_a_reader_that_marks_nothing_is_told(run, model, path):
    rows = [asked("a", "a mat on it", anna=["mat"]), asked("b", "a mat", anna=[])]
    found = run.evaluate(model, run.write("mats.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert "nothing for all 2 questions" in found.text
    assert run.evaluate(model, path).values["constant_answer"] is None


def test_spans_that_lie_across_pieces_are_told(run, model):
    row = asked("a", "in paris and france", anna=["in par", "fran"], ben=["n"])
    found = run.evaluate(model, run.write("cut.jsonl", json.dumps(row) + "\n"))
    assert "spans" in found.text.splitlines()[1]
    assert "were widened to its border" in found.text.splitlines()[1]


def test_lines_say_where_the_spans_stand(run, model):
    rows = [*ROWS, {"id": "empty", "question": "Where?", "context": "\u200b"}]
    path = run.write("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    written = run.predict(model, path, "out.jsonl", "jsonl")["out.jsonl"]
    told = [json.loads(line) for line in written.splitlines()]
    assert [one["id"] for one in told] == ["right", "half", "long", "empty"]
    for row, one in zip(rows, told, strict=True):
        for span in one["spans"]:
            assert row["context"][span["start"] : span["end"]] == span["text"]
            assert span["probability"] == pytest.approx(0.9, rel=1e-5)
    assert [span["text"] for span in told[0]["spans"]] == ["PARIS \r\n the City", "France"]
    assert [span["text"] for span in told[2]["spans"]] == ["france"]
    assert told[3] == {"id": "empty", "spans": []}
    detailed = run.predict(model, path, "out.jsonl", "jsonl", details=True)["out.jsonl"].splitlines()
    tokens = json.loads(detailed[0])["tokens"]
    assert [CONTEXT[token["start"] : token["end"]] for token in tokens[:4]] == ["In", "PARIS", "the", "City"]
    assert (tokens[1]["B"], tokens[1]["O"]) == (pytest.approx(0.9), pytest.approx(0.05))
    assert json.loads(detailed[3])["tokens"] == []
    assert json.loads(detailed[0])["spans"] == told[0]["spans"]


def test_the_file_for_multispanqas_scorer(run, model, path):
    (text,) = run.predict(model, path, "out.json", "json").values()
    assert json.loads(text) == {
        "right": ["PARIS \r\n the City", "France"], "half": ["paris", "france"], "long": ["france"],
    }  # fmt: skip


def test_a_question_without_room_is_cut_and_told_by_its_id(run, model, path, caplog):
    model.extra = BioMrcOptions(max_length=20, window_step=16, max_question=8).to_json()
    run.predict(model, path, "out.jsonl", "jsonl")
    assert "3 of 3 questions are longer than max_question, 1 tokens, and were cut (first" in caplog.text
    assert "held.jsonl:1: question right)" in caplog.text


def test_what_does_not_fit_is_refused(run, model, path):
    with pytest.raises(InputError, match=r"format is 'csv'; .* jsonl, json"):
        run.predict(model, path, "out.csv", "csv")
    model.labels = ("B-LOC", "I-LOC", "O")
    with pytest.raises(InputError, match=r"tables: .*B-LOC, I-LOC, O; .*B, I"):
        run.evaluate(model, path)


TEXT = "\N{HUGGING FACE} In paris\r\nfrance ; caf\u00e9"


@pytest.mark.parametrize("tool", ["doccano", "label_studio", "prodigy", "brat"])
def test_spans_of_all_labels_of_a_text_are_one_text_of_a_tool(run, model, tool):
    """Whatever tool the texts came from; text and offsets are kept, of emoji and CRLF, too."""
    path = run.write("in.jsonl", json.dumps({"id": 3, "data": {"text": TEXT, "meta": "x"}}) + "\n")
    evaluator = run.evaluator(model, questions='{"LOC": "Where?", "NAME": "NAME"}')
    target = run.folder / "out" / {"label_studio": "a.json", "brat": "a"}.get(tool, "a.jsonl")
    evaluator.write_predictions(target, evaluator.read(path, split="", labelled="no"), tool)
    if tool == "label_studio":
        (task,) = json.loads(target.read_text())
        assert task["data"] == {"text": TEXT, "meta": "x"}
        assert task["predictions"][0]["score"] == pytest.approx(0.9)
        target.write_text(target.read_text().replace('"predictions"', '"annotations"'))
    (found,) = read_annotated(str(target), AnnotationSettings()).texts
    assert found.id == "3"
    spans = [span for _, spans in found.annotations for span in spans]
    assert found.text == TEXT
    assert sorted((TEXT[start:end], label) for start, end, label in spans) == [
        ("france", "LOC"), ("france", "NAME"), ("paris", "LOC"), ("paris", "NAME"),
    ]  # fmt: skip


def test_spans_inside_of_words_and_questions_without_labels_are_written_for_tools(tmp_path):
    """Prodigy wants spans of whole tokens, so these are cut; a question of its own is a text of its own."""
    row = Question("q1", "Where?", "in NewYork, now", (), "a:1", "")
    spans = [{"start": 6, "end": 10, "text": "York", "probability": 0.5}]
    text, empty = predicted_texts([row, row._replace(id="q2")], [{"spans": spans}, {"spans": []}])
    assert text.words == [(0, 2), (3, 6), (6, 10), (10, 11), (12, 15)]
    assert (text.id, text.spans, text.scores, text.score) == ("q1", [(6, 10, "answer")], [0.5], pytest.approx(0.5))
    assert (empty.id, empty.spans, empty.score) == ("q2", [], None)
    (impossible,) = predicted_texts([row], [{"spans": [spans[0] | {"probability": 0.0}]}])
    assert impossible.score < 1e-300
    (content,) = written("prodigy", [text], tmp_path / "a.jsonl", AnnotationSettings(), "model").values()
    assert [(span["token_start"], span["token_end"]) for span in json.loads(content)["spans"]] == [(2, 2)]


def test_texts_without_an_id_get_none(run, model):
    path = run.write("in.jsonl", json.dumps({"text": "in paris"}))
    evaluator = run.evaluator(model, questions="LOC=Where?")
    evaluator.write_predictions(run.folder / "a.jsonl", evaluator.read(path, split="", labelled="no"), "doccano")
    assert json.loads((run.folder / "a.jsonl").read_text()) == {"text": "in paris", "label": [[3, 8, "LOC"]]}


def test_the_questions_of_a_model_are_asked_of_each_file(run, model):
    model.extra["files"] = {"questions": '{"LOC": "Where?"}'}
    rows = [{"text": "in paris", "label": [[3, 8, "LOC"]]}, {"text": "in france", "label": []}]
    path = run.write("held.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    values = run.evaluate(model, path).values["scores"]
    assert (values["n"]["value"], values["exact_match"]["value"]) == (2, 0.5)
    written = run.predict(model, run.write("new.jsonl", json.dumps({"text": "in paris"})), "out.jsonl", "jsonl")
    assert json.loads(written["out.jsonl"])["id"] == "1/LOC"
