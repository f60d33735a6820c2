"""The B/I/O reading task: from a file of questions to targets, and scores that do not depend on batches."""

import dataclasses
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bert
from bert.data import encoded_examples
from bert.data.encoded_examples import ExampleSettings
from bert.errors import InputError
from bert.model import forward
from bert.prediction import bio_mrc as prediction_bio_mrc
from bert.prediction import questions
from bert.prediction.scores import HERE, Devices
from bert.training import sharding
from configs import bio_mrc as config_file
from tasks import votes
from tasks.bio_mrc import bio_scores
from tasks.bio_mrc import job as bio_mrc_job
from tasks.questions.answer_tokens import mark
from tasks.questions.question_rows import QuestionSettings
from tasks.token_labels import TokenLabels, windows_with_targets
from tasks.votes import VoteSettings

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
WORDS = "the cat dog sat on mat paris france new york john smith good bad movie read book".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def model():
    return bert.load(GOLDEN / "tiny_tokcls")


def rows_of(count: int, seed: int) -> list[dict]:
    """Passages of 1 to 60 words, in which anna, ben and cleo mark up to three stretches of words each."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        words = rng.choice(WORDS, rng.integers(1, 61)).tolist()
        ends = np.cumsum([len(word) + 1 for word in words])
        starts, ends = ends - [len(word) + 1 for word in words], ends - 1
        annotations = []
        for name in ("anna", "ben", "cleo")[: rng.integers(1, 4)]:
            cuts = np.sort(rng.choice(len(words) + 1, min(2 * rng.integers(0, 4), len(words) // 2 * 2), replace=False))
            spans = [[int(starts[a]), int(ends[b - 1])] for a, b in zip(cuts[::2], cuts[1::2], strict=True)]
            annotations.append({"annotator": name, "spans": spans})
        rows.append({"id": f"q{i}", "question": "who sat ?", "context": " ".join(words), "annotations": annotations})
    return rows


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("bio") / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(24, 0)))
    return path


@pytest.fixture(scope="module")
def read(file):
    """read(name=value, ...) -> the job of the config with these settings."""

    def make(**changes) -> bio_mrc_job.Job:
        config = config_file.get_config()
        for name, value in ({"data": str(file), "validation": str(file), "max_length": 32, "window_step": 9}).items():
            config[name] = changes.pop(name, value)
        config.update(changes)
        return bio_mrc_job.read(config)

    return make


# ---- exports of annotation tools ----


def test_the_labels_of_an_export_are_asked_of_each_part_and_by_the_finished_model(read, tmp_path):
    """Also of a validation file in which nobody marked one of them."""
    rows = [
        {"text": f"{word} sat", "label": [[0, len(word), label]]} for word, label in (("ann", "PER"), ("rome", "LOC"))
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.jsonl").write_text(json.dumps(rows[0]) + "\n")
    job = read(data=str(tmp_path / "a.jsonl"), validation=str(tmp_path / "b.jsonl"), questions="PER=Who?")
    asked = [("1/PER", "Who?"), ("1/LOC", "LOC"), ("2/PER", "Who?"), ("2/LOC", "LOC")]
    assert [(row.id, row.question) for row in job.train.rows] == asked
    assert [(row.id, row.question) for row in job.validation.rows] == asked[:2]
    assert job.extra({})["files"]["questions"] == '{"PER": "Who?", "LOC": "LOC"}'


# ---- what is trained ----


def epoch(job, model, **changes) -> list[dict]:
    batches = job.batches(model.tokenizer, ExampleSettings(**({"batch_size": 8, "max_length": 32} | changes)))
    return [batches(i) for i in range(batches.steps_per_epoch)]


@pytest.mark.parametrize("packed", [True, False])
def test_every_token_of_every_passage_counts_once(read, model, packed):
    """Over the windows of an epoch; an example's windows sum to one example; the question never counts."""
    job = read()
    made = epoch(job, model, packed=packed)
    pieces = sum(len(model.tokenizer.encode(row.context).ids) for row in job.train.rows)
    assert sum(float(batch["target_weights"].sum()) for batch in made) == pieces
    assert sum(float(batch["example_share"].sum()) for batch in made) == pytest.approx(len(job.train.rows), abs=1e-4)
    for batch in made:
        counts = batch["target_weights"] > 0
        assert (batch["type_ids"][counts] == 1).all(), "segment B is the passage"
        assert not np.isin(batch["token_ids"][counts], [0, 2, 3]).any(), "no [PAD], [CLS], [SEP]"
        np.testing.assert_allclose(batch["targets"][counts].sum(-1), 1, atol=1e-6)
    windows = sum(int((batch["example_share"] > 0).sum()) for batch in made)
    assert windows > 1.5 * len(job.train.rows), "most passages have several"


def targets_of(job, model) -> np.ndarray:
    """All targets that count, ordered, as the batches hold them."""
    rows = [batch["targets"][batch["target_weights"] > 0] for batch in epoch(job, model)]
    return np.array(sorted(np.concatenate(rows).tolist()))


def test_targets_are_the_shares_of_the_votes(read, model):
    """Thirds and halves; hard where the majority is asked for; a weight of 0 takes a voter out."""
    soft = targets_of(read(), model)
    assert {round(value, 3) for value in soft.ravel().tolist()} == {0, 0.333, 0.5, 0.667, 1}
    hard = targets_of(read(votes="majority"), model)
    assert set(hard.ravel().tolist()) == {0, 1}
    assert hard.shape == soft.shape
    only = targets_of(read(annotator_weights="ben=0,cleo=0"), model)
    kept = targets_of(read(annotators="anna"), model)
    np.testing.assert_array_equal(only, kept)
    assert set(only.ravel().tolist()) == {0, 1}


def test_targets_follow_the_models_labels(read, model):
    """A model whose scores are those of O, B, I gets targets in that order."""
    job = read()
    found = targets_of(job.with_labels(("O", "B", "I")), model)
    want = targets_of(job, model)[:, [2, 0, 1]]
    np.testing.assert_array_equal(found, np.array(sorted(want.tolist())))


def test_spans_that_change_are_told(read, model, tmp_path, caplog):
    """A span from the middle of a word, in training and in validation."""
    path = tmp_path / "q.jsonl"
    row = {"question": "who ?", "context": "the cats sat", "annotations": [{"annotator": "a", "spans": [[5, 12]]}]}
    path.write_text(json.dumps(row) + "\n")
    job = read(data=str(path), validation=str(path))
    settings = ExampleSettings(8, 32)
    job.batches(model.tokenizer, settings)
    job.evaluator(model.tokenizer, model.config, settings, HERE)
    assert caplog.messages == [
        f"{part}: 1 spans: 1 begin or end inside a piece and were widened to its border"
        for part in ("training", "validation")
    ]


def test_answers_without_a_position_are_scored_but_not_trained_on(read, model, tmp_path):
    """Of two questions on a passage one has an answer that stands there twice; another passage has nothing in it."""

    def asked(id, *answers):
        return {"id": id, "question": "who ?", "context": "the cat the", "answers": [*answers]}

    rows = [
        asked("right", {"text": "cat", "answer_start": 4}),
        asked("twice", {"text": "the"}, {"text": "", "answer_start": 0}),
    ]
    rows.append(asked("nothing") | {"context": "\u200b"})
    path = tmp_path / "q.json"
    path.write_text(json.dumps(rows))
    job = read(data=str(path), validation=str(path), metrics=",".join(bio_scores.NAMES))
    assert [[row.id for row in part.rows] for part in (job.train, job.validation)] == [
        ["right"], ["right", "twice", "nothing"],
    ]  # fmt: skip
    assert "dropped 1: no position of an answer: more than once in the passage, no answer_start" in job.report
    found = job.evaluator(model.tokenizer, model.config, ExampleSettings(8, 32), HERE)(model.params)
    assert (found["n"], found["n_tokens"]) == (3, 3)
    right = dataclasses.replace(job, validation=job.validation._replace(rows=job.validation.rows[:1]))
    assert job.fingerprint == right.fingerprint, "runs that were begun without the others go on"


# ---- how it is scored ----


def test_the_trained_loss_is_the_loss_that_is_reported(read, model):
    """-sum_i sum_j t_ij log p_ij two ways: by the windows' targets in batches, and by the merged probabilities of each
    passage; the mean over tokens and over passages, too."""
    job = read()
    rows, options = job.train.rows, job.options
    cut, pieces_N = questions.windows_of(rows, model.tokenizer, options)
    marked = mark(rows, pieces_N)
    target_KC, voted_K = votes.target(bio_scores.vote_counts(marked, pieces_N, {}), VoteSettings(), bio_scores.OUTSIDE)
    encoded = windows_with_targets(cut, target_KC, voted_K.astype(np.float32))
    task = TokenLabels(3)
    totals = {"loss": 0.0, "labelled_tokens": 0.0, "labelled_examples": 0.0, "loss_count": 0.0}
    for batch, _ in encoded_examples.prediction_batches(encoded, ExampleSettings(8, 32)):
        seen = {name: batch[name] for name in batch if not name.startswith(("target", "example_share"))}
        logits = forward.outputs(model.params, seen, config=model.config, wanted=("token_logits",))
        sums = task.sums({"token_logits": jnp.array(logits["token_logits"])}, batch)
        for name, value in (sums | {"loss_count": task.counts(batch)["loss"]}).items():
            totals[name] += float(value)
    told = task.metrics(totals)
    p_KC, starts = prediction_bio_mrc.probabilities(model.scorer(batch_size=8), cut, options), cut.starts
    losses_N = bio_scores.row_losses(p_KC, target_KC, starts)
    assert totals["loss"] == pytest.approx(losses_N.sum(), rel=1e-5)
    found, _ = bio_scores.score(p_KC, starts, rows, pieces_N, marked, {}, options)
    assert told["cross_entropy"] == pytest.approx(found["cross_entropy"].value, rel=1e-5)
    assert told["cross_entropy_per_example"] == pytest.approx(found["cross_entropy_per_example"].value, rel=1e-5)
    assert found["cross_entropy_per_example"].value == pytest.approx(losses_N.mean(), rel=1e-6)


def test_scores_do_not_depend_on_batches_and_devices(read, model):
    """Batches of 8 or 3 on one or eight devices, packed or not, questions in another order: the same to 1e-6."""
    job = read(metrics=",".join(bio_scores.NAMES))
    turned = dataclasses.replace(job, validation=job.validation._replace(rows=job.validation.rows[::-1]))

    def scores(job, size, packed=True, devices=1):
        mesh = sharding.make_mesh(devices=jax.devices()[:devices])
        place = Devices(lambda batch: sharding.place(batch, mesh), sharding.on_this_host)
        settings = ExampleSettings(size, 32, packed, row_unit=devices)
        with jax.set_mesh(mesh):
            params = jax.device_put(model.params, sharding.replicated(mesh))
            return job.evaluator(model.tokenizer, model.config, settings, place)(params)

    want = scores(job, 8)
    assert set(want) == set(bio_scores.NAMES)
    assert want["n"] == 24
    for found in (scores(job, 8, packed=False), scores(job, 3), scores(turned, 8), scores(job, 8, devices=8)):
        assert found == pytest.approx(want, abs=1e-6)
    other = scores(job.with_labels(("I", "B", "O")), 8)
    assert other["cross_entropy"] != pytest.approx(want["cross_entropy"], abs=1e-3), "scores go by the labels' names"


# ---- settings ----


def test_a_job_says_what_it_is(read):
    job = read(metric="f1", metrics="cross_entropy,f1", loss_per="example", max_span=5, decoding="greedy")
    assert (job.labels, job.fresh, job.names) == (("B", "I", "O"), ("token_classifier",), ("cross_entropy", "f1"))
    assert (job.choice.metric, job.choice.larger) == ("f1", True)
    assert read(metrics="kl").choice.larger is False
    assert (job.loss.per, job.options.max_span, job.options.decoding) == ("example", 5, "greedy")
    extra = job.extra({})
    assert extra["bio_mrc"] == dataclasses.asdict(job.options)
    assert extra["files"] == dataclasses.asdict(QuestionSettings())
    assert job.report.count("\n") == 2
    assert job.report.splitlines()[2].startswith("validation: 24 of 24 passages are in the training part")  # the same
    assert read(validation="", validation_share=0.0).choice is None
    assert job.baseline() == {}


def test_validation_is_split_off_by_whole_articles(read, file):
    job = read(validation="", validation_share=0.25, seed=3)
    parts = [[row.id for row in part.rows] for part in (job.train, job.validation)]
    assert (len(parts[0]), len(parts[1])) == (18, 6)
    assert sorted(parts[0] + parts[1]) == sorted(f"q{i}" for i in range(24))


def test_weights_may_be_of_annotators_of_either_part(read, tmp_path):
    """Who marked only what the split took for validation is still an annotator."""
    held = tmp_path / "held.jsonl"
    held.write_text(json.dumps(rows_of(1, 1)[0] | {"annotations": [{"annotator": "dan", "spans": []}]}) + "\n")
    assert read(validation=str(held), annotator_weights="dan=2").voting.weights == {"dan": 2.0}
    with pytest.raises(InputError, match=r"'eve'; .*anna, ben, cleo, dan$"):
        read(validation=str(held), annotator_weights="eve=2")


def test_other_questions_have_another_fingerprint(read):
    job = read()
    assert read().fingerprint == job.fingerprint
    row = job.train.rows[0]
    others = [row._replace(context=row.context + " "), row._replace(question=""), row._replace(annotations=())]
    prints = {
        dataclasses.replace(job, train=job.train._replace(rows=[other, *job.train.rows[1:]])).fingerprint
        for other in others
    }
    prints |= {dataclasses.replace(job, validation=None).fingerprint, job.fingerprint}
    assert len(prints) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"votes": "hard"}, "config.votes is 'hard'; it must be one of soft, majority"),
        ({"loss_per": "batch"}, "config.loss_per is 'batch'; it must be one of token, example"),
        ({"metrics": "f1,em"}, "config.metrics is 'em'"),
        ({"metric": "kl", "metrics": "f1"}, "config.metric is 'kl'; it must be one of f1"),
        ({"decoding": "beam"}, "decoding is 'beam'"),
        ({"annotator_weights": "anna"}, "config.annotator_weights: 'anna' must be NAME=NUMBER"),
        ({"data": ""}, "config.data is missing; name the file with the questions"),
    ],
)
def test_settings_are_checked_before_anything_is_loaded(read, changes, message):
    with pytest.raises(InputError, match=f"^{message}"):
        read(**changes)


def test_a_question_that_leaves_no_room_is_named_with_its_file(read, model, file):
    job = read(max_length=16, window_step=12)
    with pytest.raises(InputError, match=f"^{file}:1: .*q0: .*3 .*10 "):
        job.batches(model.tokenizer, ExampleSettings(8, 16))
