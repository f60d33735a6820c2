"""Start and end of answers: targets in windows, the loss by its definition, scores and the threshold of no answer."""

import dataclasses
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bert
from bert.data import examples
from bert.data.examples import ExampleSettings
from bert.errors import InputError
from bert.model.heads import Model
from bert.prediction import answer_spans, questions, scores
from bert.prediction.answer_spans import Candidate, Found, SpanReading
from bert.prediction.questions import Asked
from bert.text.alignment import Pieces
from bert.text.tokenizer import Tokenizer
from bert.training import evaluate
from bert.training.task import with_counts
from configs import squad as recipe
from tasks import squad
from tasks.reading.examples import ReadReport
from tasks.reading.question_rows import Annotation, Gold, Question, Questions, QuestionSettings
from tasks.squad import StartAndEnd, windows_with_answers
from tests.bert.prediction.table_model import GOLDEN

TOKENIZER = Tokenizer.load(GOLDEN / "tiny_qa")
SMALL = SpanReading(max_length=24, window_step=6, max_question=8)


def question(context, *spans, id="q", asked="Where?") -> Question:
    """Each of the spans, [start, end) or None, is one annotator's."""
    votes = tuple(Annotation(str(i), (span,) if span else ()) for i, span in enumerate(spans, 1))
    golds = tuple(Gold(name, tuple(context[a:b] for a, b in own)) for name, own in votes)
    return Question(id, asked, context, votes, f"file:{id}", id, golds)


def part(*rows) -> Questions:
    return Questions(list(rows), ReadReport("file", len(rows), len(rows)))


def encoded(rows, reading=SMALL, without="null"):
    """(the windows with their targets, the same as they were cut, where the pieces stand)."""
    cut, pieces_N = questions.windows_of([Asked(row.question, row.context, row.id) for row in rows], TOKENIZER, reading)
    return windows_with_answers(cut, rows, pieces_N, without), cut, pieces_N


# ---- targets ----

# 157 letters, each a token; questions of two tokens leave room for 114 of them.
LETTERS = " ".join("abcdefghijklmnopqrstuvwxyz"[i % 26] for i in range(157))
WIDE = SpanReading(max_length=114 + 5, window_step=64)
CUT = (2 * 110, 2 * 118 + 1)  # tokens 110 to 118


def test_an_answer_cut_by_a_window_counts_in_the_one_that_holds_it():
    """Windows over tokens [0, 114) and [64, 157): none in the first, tokens 46 to 54 of the second."""
    found, cut, _ = encoded([question(LETTERS, CUT)], WIDE)
    assert cut.bounds_W2.tolist() == [[0, 114], [64, 157]]
    before = 4  # [CLS] where ? [SEP]
    where = TOKENIZER.encode_ids(["Where?"])[0]
    assert len(where) == 2
    assert found.of_example["start"].tolist() == [0, before + 46]
    assert found.of_example["end"].tolist() == [0, before + 54]
    assert found.of_example["target_weights"].tolist() == [1, 1]
    start, end = (found.of_example[name][1] + found.starts[1] for name in ("start", "end"))
    answer = TOKENIZER.encode_ids([LETTERS[slice(*CUT)]])[0]
    assert found.token_ids[start : end + 1].tolist() == answer


def test_windows_without_the_answer_are_left_out_if_asked_for(caplog):
    caplog.set_level("INFO", logger="absl")
    rows = [question(LETTERS, CUT, id="cut"), question("the cat", None, id="none")]
    for without, kept, became in (("null", 3, "trained as without an answer"), ("drop", 2, "left out")):
        caplog.clear()
        found, _, _ = encoded(rows, WIDE, without)
        assert len(found) == kept
        assert f"1 of 3 windows do not hold the answer to their question: {became}" in caplog.messages
        assert found.of_example["start"].tolist() == [0, 50, 0][-kept:]
    assert found.of_example["end"].tolist() == [58, 0]  # the question without an answer stays
    assert found.token_ids[: found.starts[1]].tolist() == encoded(rows, WIDE)[0].token_ids.tolist()[119:][: 4 + 93 + 1]


def test_an_answer_in_no_window_is_counted_and_never_clipped(caplog):
    """One that is longer than the room, and one of characters that no piece holds."""
    rows = [question(LETTERS, (0, 231), id="long"), question("a \u200b b", (2, 3), id="invisible")]
    found, _, _ = encoded([*rows, question("a b c", (2, 3), id="short")], WIDE)
    assert found.of_example["start"].tolist() == [0, 0, 5]  # the invisible one is not trained as "no answer"
    assert found.of_example["end"].tolist() == [0, 0, 5]
    assert "2 of 3 answers are whole in no window, 1 of them without a piece of their own, and left out" in caplog.text
    caplog.clear()
    found, _, _ = encoded([question(LETTERS, (0, 227))], WIDE)  # 114 tokens
    assert (found.of_example["start"].tolist(), found.of_example["end"].tolist()) == ([4, 0], [117, 0])
    assert "whole in no window" not in caplog.text
    with pytest.raises(
        InputError, match=r"no window holds an answer; raise config\.max_length, or set windows_without"
    ):
        encoded(rows, WIDE, "drop")


@pytest.mark.parametrize(
    ("spans", "trained"),
    [
        ([(0, 3), (4, 7), (4, 7)], (1, 1)),
        ([(0, 3), (4, 7)], (0, 0)),  # of equally many the first
        ([(4, 7), None, None], None),
        ([None, (4, 7), (4, 7), (0, 7)], (1, 1)),
        ([None], None),
        ([(0, 7)], (0, 1)),
        ([(5, 6)], (1, 1)),  # inside a piece: all of it
    ],
)
def test_the_answer_that_most_annotators_gave_is_trained(spans, trained):
    found, cut, _ = encoded([question("the cat sat", *spans)])
    first = int(cut.places_W[0])
    want = (0, 0) if trained is None else (first + trained[0], first + trained[1])
    assert (int(found.of_example["start"][0]), int(found.of_example["end"][0])) == want


def test_each_window_that_holds_the_whole_answer_is_trained_on_it():
    """Random answers in random windows: targets lead back to the answer's characters, or it is not whole there."""
    rng = np.random.default_rng(0)
    words = np.array(["the", "cat", "kkk", "New", "café", "9/7", "\u200b", "🤗"])
    for _ in range(50):
        context = "  ".join(rng.choice(words, rng.integers(1, 40)))
        pieces = Pieces(TOKENIZER.encode(context).offsets)
        if not len(pieces):
            continue
        first = int(rng.integers(0, len(pieces)))
        stop = int(rng.integers(first, min(len(pieces), first + 8))) + 1
        row = question(context, pieces.span_of(first, stop))
        found, cut, _ = encoded([row])
        for w, (a, b) in enumerate(cut.bounds_W2):
            start, end = int(found.of_example["start"][w]), int(found.of_example["end"][w])
            if not (a <= first and stop <= b):
                assert (start, end) == (0, 0)
                continue
            at = cut.places_W[w] - cut.encoded.starts[w] - a
            assert (
                context[slice(*pieces.span_of(start - at, end - at + 1))]
                == context[slice(*row.annotations[0].spans[0])]
            )


# ---- the loss ----


def sums_of(start_BT, end_BT, batch) -> float:
    outputs = {"start_logits": jnp.asarray(start_BT), "end_logits": jnp.asarray(end_BT)}
    return StartAndEnd().sums(outputs, batch)["loss"]


def test_the_loss_by_hand():
    """Scores ln 2, 0, 0 behind a neighbour and before padding: start at the first -ln 1/2, end at the last -ln 1/4."""
    scores_BT = np.array([[9.0, 9.0, np.log(2), 0.0, 0.0, 9.0]])
    batch = {
        "example_ids": np.array([[1, 1, 2, 2, 2, 0]]), "cls_positions": np.array([[0, 2, 0]]),
        "start": np.array([[0, 0, 0]]), "end": np.array([[0, 2, 0]]), "target_weights": np.array([[0.0, 1.0, 0.0]]),
    }  # fmt: skip
    assert float(sums_of(scores_BT, scores_BT, batch)) == pytest.approx((np.log(2) + np.log(4)) / 2)
    totals = {"loss": float(sums_of(scores_BT, scores_BT, batch)), "loss_count": 0.0}
    assert StartAndEnd().metrics(totals)["loss"] is None
    totals["loss_count"] = float(StartAndEnd().counts(batch)["loss"])
    assert StartAndEnd().metrics(totals)["loss"] == pytest.approx(1.5 * np.log(2))
    gradient = np.asarray(jax.grad(lambda s: sums_of(s, s, batch))(jnp.asarray(scores_BT, jnp.float32)))
    np.testing.assert_allclose(gradient, [[0, 0, 0, 0.25, -0.25, 0]], atol=1e-6)  # half of p - t, start and end


def test_the_loss_is_the_references():
    """Where a row is one example; the reference lets padding compete, so the whole row is said to be the example."""
    want = json.loads((GOLDEN / "heads_summary.json").read_text())["question_answering"]
    with np.load(GOLDEN / "heads.npz") as logits:
        start_BT, end_BT = logits["qa_start_logits"], logits["qa_end_logits"]
    batch = {
        "example_ids": np.ones(start_BT.shape, np.int32), "cls_positions": np.zeros((3, 1), np.int32),
        "start": np.array(want["labels"]["start_positions"])[:, None],
        "end": np.array(want["labels"]["end_positions"])[:, None], "target_weights": np.ones((3, 1), np.float32),
    }  # fmt: skip
    assert float(sums_of(start_BT, end_BT, batch)) / 3 == pytest.approx(want["loss"], abs=1e-5)


def test_packed_windows_have_the_loss_of_each_window_alone():
    """Whatever their neighbours and the padding score, and with gradient 0 outside of a window."""
    rng = np.random.default_rng(0)
    contexts = [" ".join(rng.choice(["the", "cat", "sat", "on"], n)) for n in (3, 9, 30, 1, 17)]
    rows = [question(text, (0, 3) if i % 3 else None) for i, text in enumerate(contexts)]
    found, _, _ = encoded(rows)
    score_K2 = rng.standard_normal((len(found.token_ids), 2), np.float32) * 3
    found = dataclasses.replace(found, of_token={"score": score_K2})
    alone = []
    for i in range(len(found)):
        own_K2 = score_K2[found.starts[i] : found.starts[i + 1]].astype(np.float64)
        log_p = own_K2 - np.logaddexp.reduce(own_K2, axis=0)
        alone.append(-(log_p[found.of_example["start"][i], 0] + log_p[found.of_example["end"][i], 1]) / 2)
    everything = np.arange(len(found))
    for length, slots, members in ((64, 4, np.array_split(everything, 4)), (24, 1, np.array_split(everything, 7))):
        batch = examples.assemble(found, members, length, 10, slots)
        for noise in (0.0, 30.0):
            padding = batch["example_ids"] == 0
            logits_BT2 = batch["score"] + noise * padding[..., None]
            total = float(sums_of(logits_BT2[..., 0], logits_BT2[..., 1], batch))
            assert total == pytest.approx(sum(alone), rel=1e-5)
            assert float(StartAndEnd().counts(batch)["loss"]) == len(alone) == 7
        gradient = jax.grad(lambda s, batch=batch: sums_of(s, s, batch))(jnp.asarray(batch["score"][..., 0]))
        assert not np.asarray(gradient)[padding].any()
        assert np.isfinite(gradient).all()
        assert np.abs(np.asarray(gradient)[~padding]).max() > 0.1


# ---- scores, and the threshold of no answer ----

# null minus best span: a (has an answer, the span is right) -3; b (the same) 1; c (none) 2; d (none) -1
CASES = {"a": (True, -3.0), "b": (True, 1.0), "c": (False, 2.0), "d": (False, -1.0)}
MAY_BE_NONE = SpanReading(no_answer=True)


def four_questions():
    context, pieces = "the cat sat", Pieces([(0, 3), (4, 7), (8, 11)])
    rows = [question(context, (4, 7) if has else None, id=id) for id, (has, _) in CASES.items()]
    found = [Found([Candidate(1, 2, 5.0), Candidate(0, 2, 1.0)], 5.0 + odds) for _, odds in CASES.values()]
    return rows, lambda reading: answer_spans.answers(found, [context] * 4, [pieces] * 4, reading)


def test_the_threshold_is_chosen_stored_and_used():
    """Threshold 0 gives 50, the best 75, at a threshold that is not 0; the model directory carries it to prediction."""
    rows, answers = four_questions()
    at_zero = [one["answer"] for one in answers(MAY_BE_NONE)]
    assert at_zero == ["cat", "", "", "cat"]
    found = squad.score(rows, answers(MAY_BE_NONE), MAY_BE_NONE)
    assert found["exact"] == found["f1"] == 75.0
    assert (found["HasAns_exact"], found["NoAns_exact"], found["total"]) == (50.0, 100.0, 4)
    assert found["threshold"] == pytest.approx(-2.0)  # midway between the odds of a and d; of equal ones the lowest
    assert not any(name.startswith("best_") for name in found)
    extra = job(part(*rows), reading=MAY_BE_NONE).extra(found)
    config = bert.load(GOLDEN / "tiny_qa").config
    stored = answer_spans.reading_of(json.loads(json.dumps(extra)), config)
    assert (stored.threshold, stored.no_answer) == (found["threshold"], True)
    told = [one["answer"] for one in answers(stored)]
    assert told == ["cat", "", "", ""]
    assert sum(said == ("cat" if has else "") for said, (has, _) in zip(told, CASES.values(), strict=True)) == 3


def test_the_threshold_is_the_best_for_what_chooses_the_model():
    """Of a the words are partly right (F1 2/3 with "the cat sat"), of b there are none: f1 keeps a, exact does not."""
    context, pieces = "the cat sat", Pieces([(0, 3), (4, 7), (8, 11)])
    rows = [question(context, (4, 11), id="a"), question(context, None, id="b"), question(context, (4, 7), id="c")]
    found = [Found([Candidate(1, 2, 0.0)], odds) for odds in (1.0, 0.9, 3.0)]
    answers = answer_spans.answers(found, [context] * 3, [pieces] * 3, MAY_BE_NONE)
    by = {name: squad.score(rows, answers, MAY_BE_NONE, name) for name in ("f1", "exact")}
    assert by["f1"]["f1"] == pytest.approx(100 * (2 / 3 + 0 + 1) / 3)
    assert by["exact"]["exact"] == by["f1"]["exact"] == pytest.approx(100 / 3)
    assert by["exact"]["threshold"] == pytest.approx(-0.1)  # nothing for all is as exact
    assert by["f1"]["threshold"] == pytest.approx(4.0)


def test_questions_with_nothing_to_read_are_scored_as_unanswered():
    rows = [question("", None, id="a"), question("the cat", (4, 7), id="b")]
    found = [Found([], 0.5), Found([Candidate(1, 2, 2.0)], 5.0)]
    pieces = [Pieces([]), Pieces([(0, 3), (4, 7)])]
    told = answer_spans.answers(found, ["", "the cat"], pieces, MAY_BE_NONE)
    assert squad.score(rows, told, MAY_BE_NONE)["exact"] == 100.0
    told = answer_spans.answers(found, ["", "the cat"], pieces, SpanReading())
    assert squad.score([rows[0]._replace(annotations=()), rows[1]], told, SpanReading())["exact"] == 100.0


def one_answer(text, *golds):
    """The scores of a text that is predicted where the annotators gave others."""
    context = " | ".join([text, *golds])
    spans = [(context.index(f"| {gold}") + 2, context.index(f"| {gold}") + 2 + len(gold)) for gold in golds]
    words = text.split()
    starts = [context.index(word) for word in words]
    pieces = Pieces([(a, a + len(word)) for a, word in zip(starts, words, strict=True)])
    told = answer_spans.answers([Found([Candidate(0, len(words), 1.0)], 0.0)], [context], [pieces], SpanReading())
    assert told[0]["answer"] == text
    return squad.score([question(context, *spans)], told, SpanReading())


def test_of_several_gold_answers_the_best_counts():
    found = one_answer("in the Paris area", "Paris", "the Paris area")
    assert (found["exact"], found["f1"], found["total"]) == (0.0, pytest.approx(80.0), 1)  # not the mean, 65
    assert one_answer("the Eiffel Tower.", "Eiffel tower") == {"f1": 100.0, "exact": 100.0, "total": 1}
    assert one_answer("the", "The") == {"f1": 0.0, "exact": 100.0, "total": 1}  # by the rules of 1.1


# ---- the job ----


def job(train, held=None, reading=SMALL, without="null") -> squad.Job:
    choice = squad.Choice("f1") if held else None
    return squad.Job(train, held, reading, without, choice, QuestionSettings())


def test_scores_of_a_run_are_those_of_the_model_that_it_saves():
    """The evaluator on parameters, and `answer_spans.read` on the model, over several windows."""
    rng = np.random.default_rng(0)
    contexts = [" ".join(rng.choice(["dog", "cat", "sat", "run", "mat"], 20)) for _ in range(12)]
    rows = [question(text, (0, 3) if i % 2 else None, id=str(i)) for i, text in enumerate(contexts)]
    model = bert.load(GOLDEN / "tiny_qa")
    made = job(part(*rows), part(*rows), dataclasses.replace(SMALL, no_answer=True))
    evaluate = made.evaluator(TOKENIZER, model.config, ExampleSettings(4, 24), scores.HERE)
    found = evaluate(model.params)
    model.extra = made.extra(found)
    told = model.predict([(row.question, row.context) for row in rows])
    right = [one["answer"] == contexts[i][:3] if i % 2 else one["answer"] == "" for i, one in enumerate(told)]
    assert found["exact"] == pytest.approx(100 * np.mean(right))
    assert found["exact"] >= 50.0
    assert found["threshold"] == model.extra["squad"]["threshold"] != 0.0


@pytest.mark.parametrize("without", squad.WITHOUT)
def test_the_loss_of_an_evaluation_is_that_of_training(without):
    """Windows with the answer, without it, and of questions that have none: the same mean as over training batches."""
    rows = [
        question("the cat sat on the mat and the dog " * 4, span, id=str(i)) for i, span in enumerate([(4, 7), None])
    ]
    model = bert.load(GOLDEN / "tiny_qa")
    made = dataclasses.replace(job(part(*rows), part(*rows), without=without))
    found = made.evaluator(TOKENIZER, model.config, ExampleSettings(4, 24), scores.HERE)(model.params)
    batches = made.batches(TOKENIZER, ExampleSettings(64, 24, packed=False))
    task, totals = made.task(model.config), {}
    network = Model(model.config, task.head(model.config))
    for number in range(batches.steps_per_epoch):
        batch = batches(number)
        outputs = network.apply({"params": model.params}, batch)
        evaluate.add(totals, with_counts(task.sums(outputs, batch), task.counts(batch)))
    assert found["cross_entropy"] == pytest.approx(task.metrics(totals)["loss"], rel=1e-5)


def test_a_reader_that_answers_nothing_is_noted():
    rows, silent, answered = [question("a", (0, 1)), question("a", None)], {"null_odds": 2.0}, {"null_odds": -2.0}
    (note,) = squad.constant(rows, [silent, {"null_odds": None}], 1.0)
    assert note == "constant_answer:nothing"
    assert squad.constant(rows, [silent, answered], 1.0) == {}
    assert squad.constant(rows, [silent, silent], None) == {}  # every question must be answered
    assert squad.constant(rows[1:] * 2, [silent, silent], 1.0) == {}  # all right


@pytest.mark.parametrize(("metric", "serves"), [("f1", "f1"), ("exact", "exact"), ("cross_entropy", "f1")])
def test_the_threshold_serves_the_metric_of_the_run(monkeypatch, metric, serves):
    monkeypatch.setattr(squad, "score", lambda *given: {"chosen by": given[-1]})
    monkeypatch.setattr(scores, "of_tokens", lambda params, config, encoded, *_: np.zeros((len(encoded.token_ids), 2)))
    rows = part(question("the cat", (0, 3)))
    made = dataclasses.replace(job(rows, rows), choice=squad.Choice(metric))
    found = made.evaluator(TOKENIZER, None, None, None)({})
    assert found["chosen by"] == serves
    tokens = int(made.batches(TOKENIZER, ExampleSettings(1, 24))(0)["example_ids"].astype(bool).sum())
    assert found["cross_entropy"] == pytest.approx(np.log(tokens))  # of scores that are all the same


def test_other_data_has_another_fingerprint():
    rows = [question("the cat", (0, 3)), question("the cat", None)]
    others = [question("the cat", (0, 3)), question("the cat", (4, 7)), question("the hat", (0, 3))]
    made = {job(part(row)).fingerprint for row in (*rows, *others)}
    assert len(made) == 4
    assert job(part(rows[0]), part(rows[1])).fingerprint not in made


def test_of_several_spans_of_one_annotator_the_report_says_that_the_first_counts():
    row = question("the cat sat", (4, 7), id="7")
    several = row._replace(annotations=(Annotation("anna", ((4, 7), (8, 11))),), golds=(Gold("anna", ("cat", "sat")),))
    assert squad.golds(several) == ["cat"]
    said = job(part(row), part(several)).report.splitlines()[-1]
    assert said.startswith("1 questions have several spans by one annotator, the first of which is the answer (first ")
    assert "several spans" not in job(part(row)).report


def squad_file(path, *unanswered):
    asked = [
        {"id": str(i), "question": "Where?", "answers": [] if i in unanswered else [{"text": "cat", "answer_start": 4}]}
        for i in range(4)
    ]
    data = [{"title": q["id"], "paragraphs": [{"context": "the cat sat", "qas": [q]}]} for q in asked]
    path.write_text(json.dumps({"version": "1", "data": data}))
    return str(path)


def config_of(tmp_path, *unanswered, **changes):
    config = recipe.get_config()
    config.data = squad_file(tmp_path / "train.json", *unanswered)
    config.validation_share = 0.5
    config.update({"max_length": 24, "window_step": 6, "max_question": 8, **changes})
    return config


@pytest.mark.parametrize(
    ("unanswered", "told", "may"),
    [((), "auto", False), ((2,), "auto", True), ((), "yes", True), ((2,), "no", False)],
)
def test_whether_a_question_may_have_no_answer(tmp_path, unanswered, told, may):
    made = squad.read(config_of(tmp_path, *unanswered, no_answer=told))
    assert made.reading == SpanReading(24, 6, 8, no_answer=may)
    assert made.choice == squad.Choice("f1", True, 0, "cross_entropy")
    assert len(made.train.rows) == len(made.validation.rows) == 2
    made = squad.read(config_of(tmp_path, validation_share=0.0, metric="exact"))
    assert made.choice is made.validation is None


def test_positions_are_for_training_and_texts_for_validation(tmp_path):
    """Of three questions one has no position; beside its text stands "", and still it is none without an answer."""
    config = config_of(tmp_path, validation_share=0.0)
    file = json.loads(pathlib.Path(config.data).read_text())
    whole = squad.read(config_of(tmp_path, validation=config.data))
    qas = [article["paragraphs"][0]["qas"][0] for article in file["data"]]
    qas[0]["answers"] = [{"text": "", "answer_start": 0}, {"text": "cats", "answer_start": 4}]
    path = tmp_path / "lost.json"
    path.write_text(json.dumps(file))
    made = squad.read(config_of(tmp_path, validation=str(path)))
    assert (len(made.train.rows), len(made.validation.rows), made.reading.no_answer) == (4, 4, False)
    assert [squad.golds(row) for row in made.validation.rows] == [["", "cats"], ["cat"], ["cat"], ["cat"]]
    assert "validation: " in made.report
    assert "could not be trained on (no position of an answer: not in the passage): 1 (first" in made.report
    lost = squad.read(config_of(tmp_path, data=str(path), validation=config.data))
    assert [row.id for row in lost.train.rows] == ["1", "2", "3"]
    assert "dropped 1: no position of an answer: not in the passage (first" in lost.report
    # Runs that were begun when these questions had no part in validation go on.
    held = whole.validation._replace(rows=whole.validation.rows[1:])
    assert made.fingerprint == dataclasses.replace(whole, validation=held).fingerprint != whole.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"no_answer": "maybe"}, r"config\.no_answer is 'maybe'; it must be one of auto, yes, no"),
        ({"windows_without_answer": "cut"}, r"config\.windows_without_answer is 'cut'; it must be one of null, drop"),
        ({"metric": "accuracy"}, r"config\.metric is 'accuracy'; it must be one of those computed: f1, exact"),
        ({"max_answer": 0}, "max_answer is 0; it must be at least 1"),
        ({"data": ""}, r"config\.data is missing; name the file with the questions"),
    ],
)
def test_settings_without_sense_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        squad.read(config_of(tmp_path, **changes))


def test_training_batches_hold_every_window_once(tmp_path):
    made = squad.read(config_of(tmp_path, 2, validation_share=0.0))
    batches = made.batches(TOKENIZER, ExampleSettings(3, 24, packed=True))
    seen = [batches(i) for i in range(batches.steps_per_epoch)]
    assert sum(batch["target_weights"].sum() for batch in seen) == 4
    for batch in seen:
        for row, slot in zip(*np.nonzero(batch["target_weights"]), strict=True):
            at = batch["cls_positions"][row, slot] + batch["start"][row, slot]
            token = TOKENIZER.vocab[batch["token_ids"][row, at]]
            assert token == ("cat" if batch["start"][row, slot] else "[CLS]")
    assert sum((batch["start"] > 0).sum() for batch in seen) == 3
