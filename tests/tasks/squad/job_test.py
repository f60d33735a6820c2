"""Start and end of answers: scores, the threshold of no answer, and the job."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest

import bert
from bert.data.encoded_examples import ExampleSettings
from bert.errors import InputError
from bert.prediction import scores
from bert.prediction import squad as prediction_squad
from bert.prediction.squad import Candidate, SearchResult, SquadOptions
from bert.tokenizer.alignment import Pieces
from bert.training import evaluate
from bert.training.task import with_counts
from configs import squad as recipe
from tasks.questions.question_rows import Annotation, Gold, QuestionSettings
from tasks.squad import job, squad_scores
from tests.bert.prediction.table_model import GOLDEN
from tests.tasks.squad.squad_questions import SMALL, TOKENIZER, part, question

# ---- scores, and the threshold of no answer ----

# null minus best span: a (has an answer, the span is right) -3; b (the same) 1; c (none) 2; d (none) -1
CASES = {"a": (True, -3.0), "b": (True, 1.0), "c": (False, 2.0), "d": (False, -1.0)}
MAY_BE_NONE = SquadOptions(no_answer=True)


def four_questions():
    context, pieces = "the cat sat", Pieces([(0, 3), (4, 7), (8, 11)])
    rows = [question(context, (4, 7) if has else None, id=id) for id, (has, _) in CASES.items()]
    found = [SearchResult([Candidate(1, 2, 5.0), Candidate(0, 2, 1.0)], 5.0 + odds) for _, odds in CASES.values()]
    return rows, lambda options: prediction_squad.answers(found, [context] * 4, [pieces] * 4, options)


def test_the_threshold_is_chosen_stored_and_used():
    """Threshold 0 gives 50, the best 75, at a threshold that is not 0; the model directory carries it to prediction."""
    rows, answers = four_questions()
    at_zero = [one["answer"] for one in answers(MAY_BE_NONE)]
    assert at_zero == ["cat", "", "", "cat"]
    found = squad_scores.score(rows, answers(MAY_BE_NONE), MAY_BE_NONE)
    assert found["exact"] == found["f1"] == 75.0
    assert (found["HasAns_exact"], found["NoAns_exact"], found["total"]) == (50.0, 100.0, 4)
    assert found["threshold"] == pytest.approx(-2.0)  # midway between the odds of a and d; of equal ones the lowest
    assert not any(name.startswith("best_") for name in found)
    extra = make_job(part(*rows), options=MAY_BE_NONE).extra(found)
    config = bert.load(GOLDEN / "tiny_qa").config
    stored = prediction_squad.options_of(json.loads(json.dumps(extra)), config)
    assert (stored.threshold, stored.no_answer) == (found["threshold"], True)
    told = [one["answer"] for one in answers(stored)]
    assert told == ["cat", "", "", ""]
    assert sum(said == ("cat" if has else "") for said, (has, _) in zip(told, CASES.values(), strict=True)) == 3


def test_the_threshold_is_the_best_for_what_chooses_the_model():
    """Of a the words are partly right (F1 2/3 with "the cat sat"), of b there are none: f1 keeps a, exact does not."""
    context, pieces = "the cat sat", Pieces([(0, 3), (4, 7), (8, 11)])
    rows = [question(context, (4, 11), id="a"), question(context, None, id="b"), question(context, (4, 7), id="c")]
    found = [SearchResult([Candidate(1, 2, 0.0)], odds) for odds in (1.0, 0.9, 3.0)]
    answers = prediction_squad.answers(found, [context] * 3, [pieces] * 3, MAY_BE_NONE)
    by = {name: squad_scores.score(rows, answers, MAY_BE_NONE, name) for name in ("f1", "exact")}
    assert by["f1"]["f1"] == pytest.approx(100 * (2 / 3 + 0 + 1) / 3)
    assert by["exact"]["exact"] == by["f1"]["exact"] == pytest.approx(100 / 3)
    assert by["exact"]["threshold"] == pytest.approx(-0.1)  # nothing for all is as exact
    assert by["f1"]["threshold"] == pytest.approx(4.0)


def test_questions_with_nothing_to_read_are_scored_as_unanswered():
    rows = [question("", None, id="a"), question("the cat", (4, 7), id="b")]
    found = [SearchResult([], 0.5), SearchResult([Candidate(1, 2, 2.0)], 5.0)]
    pieces = [Pieces([]), Pieces([(0, 3), (4, 7)])]
    told = prediction_squad.answers(found, ["", "the cat"], pieces, MAY_BE_NONE)
    assert squad_scores.score(rows, told, MAY_BE_NONE)["exact"] == 100.0
    told = prediction_squad.answers(found, ["", "the cat"], pieces, SquadOptions())
    assert squad_scores.score([rows[0]._replace(annotations=()), rows[1]], told, SquadOptions())["exact"] == 100.0


def one_answer(text, *golds):
    """The scores of a text that is predicted where the annotators gave others."""
    context = " | ".join([text, *golds])
    spans = [(context.index(f"| {gold}") + 2, context.index(f"| {gold}") + 2 + len(gold)) for gold in golds]
    words = text.split()
    starts = [context.index(word) for word in words]
    pieces = Pieces([(a, a + len(word)) for a, word in zip(starts, words, strict=True)])
    told = prediction_squad.answers(
        [SearchResult([Candidate(0, len(words), 1.0)], 0.0)], [context], [pieces], SquadOptions()
    )
    assert told[0]["answer"] == text
    return squad_scores.score([question(context, *spans)], told, SquadOptions())


def test_of_several_gold_answers_the_best_counts():
    found = one_answer("in the Paris area", "Paris", "the Paris area")
    assert (found["exact"], found["f1"], found["total"]) == (0.0, pytest.approx(80.0), 1)  # not the mean, 65
    assert one_answer("the Eiffel Tower.", "Eiffel tower") == {"f1": 100.0, "exact": 100.0, "total": 1}
    assert one_answer("the", "The") == {"f1": 0.0, "exact": 100.0, "total": 1}  # by the rules of 1.1


# ---- the job ----


def make_job(train, held=None, options=SMALL, without="null") -> job.Job:
    choice = job.Choice("f1") if held else None
    return job.Job(train, held, options, QuestionSettings(), without, choice)


def test_scores_of_a_run_are_those_of_the_model_that_it_saves():
    """The evaluator on parameters, and `prediction_squad.read` on the model, over several windows."""
    rng = np.random.default_rng(0)
    contexts = [" ".join(rng.choice(["dog", "cat", "sat", "run", "mat"], 20)) for _ in range(12)]
    rows = [question(text, (0, 3) if i % 2 else None, id=str(i)) for i, text in enumerate(contexts)]
    model = bert.load(GOLDEN / "tiny_qa")
    made = make_job(part(*rows), part(*rows), dataclasses.replace(SMALL, no_answer=True))
    evaluate = made.evaluator(TOKENIZER, model.config, ExampleSettings(4, 24), scores.HERE)
    found = evaluate(model.params)
    model.extra = made.extra(found)
    told = model.predict([(row.question, row.context) for row in rows])
    right = [one["answer"] == contexts[i][:3] if i % 2 else one["answer"] == "" for i, one in enumerate(told)]
    assert found["exact"] == pytest.approx(100 * np.mean(right))
    assert found["exact"] >= 50.0
    assert found["threshold"] == model.extra["squad"]["threshold"] != 0.0


@pytest.mark.parametrize("without", job.WITHOUT)
def test_the_loss_of_an_evaluation_is_that_of_training(without):
    """Windows with the answer, without it, and of questions that have none: the same mean as over training batches."""
    rows = [
        question("the cat sat on the mat and the dog " * 4, span, id=str(i)) for i, span in enumerate([(4, 7), None])
    ]
    model = bert.load(GOLDEN / "tiny_qa")
    made = make_job(part(*rows), part(*rows), without=without)
    found = made.evaluator(TOKENIZER, model.config, ExampleSettings(4, 24), scores.HERE)(model.params)
    batches = made.batches(TOKENIZER, ExampleSettings(64, 24, packed=False))
    task, totals = made.task(model.config), {}
    network = task.model(model.config)
    for number in range(batches.steps_per_epoch):
        batch = batches(number)
        outputs = network.apply({"params": model.params}, batch)
        evaluate.add(totals, with_counts(task.sums(outputs, batch), task.counts(batch)))
    assert found["cross_entropy"] == pytest.approx(task.metrics(totals)["loss"], rel=1e-5)


def test_a_reader_that_answers_nothing_is_noted():
    rows, silent, answered = [question("a", (0, 1)), question("a", None)], {"null_odds": 2.0}, {"null_odds": -2.0}
    (note,) = squad_scores.constant(rows, [silent, {"null_odds": None}], 1.0)
    assert note == "constant_answer:nothing"
    assert squad_scores.constant(rows, [silent, answered], 1.0) == {}
    assert squad_scores.constant(rows, [silent, silent], None) == {}  # every question must be answered
    assert squad_scores.constant(rows[1:] * 2, [silent, silent], 1.0) == {}  # all right


@pytest.mark.parametrize(("metric", "serves"), [("f1", "f1"), ("exact", "exact"), ("cross_entropy", "f1")])
def test_the_threshold_serves_the_metric_of_the_run(monkeypatch, metric, serves):
    monkeypatch.setattr(squad_scores, "score", lambda *given: {"chosen by": given[-1]})
    monkeypatch.setattr(scores.Scorer, "of_tokens", lambda self, encoded, _: np.zeros((len(encoded.token_ids), 2)))
    rows = part(question("the cat", (0, 3)))
    made = dataclasses.replace(make_job(rows, rows), choice=job.Choice(metric))
    found = made.evaluator(TOKENIZER, None, ExampleSettings(1, 24), scores.HERE)({})
    assert found["chosen by"] == serves
    tokens = int(made.batches(TOKENIZER, ExampleSettings(1, 24))(0)["example_ids"].astype(bool).sum())
    assert found["cross_entropy"] == pytest.approx(np.log(tokens))  # of scores that are all the same


def test_other_data_has_another_fingerprint():
    rows = [question("the cat", (0, 3)), question("the cat", None)]
    others = [question("the cat", (0, 3)), question("the cat", (4, 7)), question("the hat", (0, 3))]
    made = {make_job(part(row)).fingerprint for row in (*rows, *others)}
    assert len(made) == 4
    assert make_job(part(rows[0]), part(rows[1])).fingerprint not in made


def test_of_several_spans_of_one_annotator_the_report_says_that_the_first_counts():
    row = question("the cat sat", (4, 7), id="7")
    several = row._replace(annotations=(Annotation("anna", ((4, 7), (8, 11))),), golds=(Gold("anna", ("cat", "sat")),))
    assert squad_scores.golds(several) == ["cat"]
    said = make_job(part(row), part(several)).report.splitlines()[-1]
    assert said.startswith("1 questions have several spans by one annotator, the first of which is the answer (first ")
    assert "several spans" not in make_job(part(row)).report


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
    made = job.read(config_of(tmp_path, *unanswered, no_answer=told))
    assert made.options == SquadOptions(24, 6, 8, no_answer=may)
    assert made.choice == job.Choice("f1", True, 0, "cross_entropy")
    assert len(made.train.rows) == len(made.validation.rows) == 2
    made = job.read(config_of(tmp_path, validation_share=0.0, metric="exact"))
    assert made.choice is made.validation is None


def test_positions_are_for_training_and_texts_for_validation(tmp_path):
    """Of three questions one has no position; beside its text stands "", and still it is none without an answer."""
    config = config_of(tmp_path, validation_share=0.0)
    file = json.loads(pathlib.Path(config.data).read_text())
    whole = job.read(config_of(tmp_path, validation=config.data))
    qas = [article["paragraphs"][0]["qas"][0] for article in file["data"]]
    qas[0]["answers"] = [{"text": "", "answer_start": 0}, {"text": "cats", "answer_start": 4}]
    path = tmp_path / "lost.json"
    path.write_text(json.dumps(file))
    made = job.read(config_of(tmp_path, validation=str(path)))
    assert (len(made.train.rows), len(made.validation.rows), made.options.no_answer) == (4, 4, False)
    assert [squad_scores.golds(row) for row in made.validation.rows] == [["", "cats"], ["cat"], ["cat"], ["cat"]]
    assert "validation: " in made.report
    assert "could not be trained on (no position of an answer: not in the passage): 1 (first" in made.report
    lost = job.read(config_of(tmp_path, data=str(path), validation=config.data))
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
        ({"metric": "accuracy"}, r"config\.metric is 'accuracy'; .* f1, exact"),
        ({"max_answer": 0}, "max_answer is 0; it must be at least 1"),
        ({"data": ""}, r"config\.data is missing; name the file with the questions"),
    ],
)
def test_settings_without_sense_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        job.read(config_of(tmp_path, **changes))


def test_training_batches_hold_every_window_once(tmp_path):
    made = job.read(config_of(tmp_path, 2, validation_share=0.0))
    batches = made.batches(TOKENIZER, ExampleSettings(3, 24, packed=True))
    seen = [batches(i) for i in range(batches.steps_per_epoch)]
    assert sum(batch["target_weights"].sum() for batch in seen) == 4
    for batch in seen:
        for row, slot in zip(*np.nonzero(batch["target_weights"]), strict=True):
            at = batch["cls_positions"][row, slot] + batch["start"][row, slot]
            token = TOKENIZER.vocab[batch["token_ids"][row, at]]
            assert token == ("cat" if batch["start"][row, slot] else "[CLS]")
    assert sum((batch["start"] > 0).sum() for batch in seen) == 3
