"""Label smoothing: each task trains on (1 - e) t + e / C; what its setting reaches, and what it does not."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import tasks
from bert.errors import InputError
from bert.model import losses
from configs import bio_mrc, squad, table, tagging
from tasks.classification.job import Classification
from tasks.squad.job import StartAndEnd
from tasks.token_labels import TokenLabels

QUESTIONS = [
    {"id": "a", "question": "who", "context": "mary sat", "annotations": [{"annotator": "x", "spans": [[0, 4]]}]},
    {"id": "b", "question": "what", "context": "the cat sat", "annotations": [{"annotator": "x", "spans": [[4, 7]]}]},
]
LINES = "".join(json.dumps(row) + "\n" for row in QUESTIONS)
FILES = {
    "classification": (table, "rows.csv", "text,label\ngood,yes\nbad,no\n", {"text": "text", "label": "label"}),
    "bio_mrc": (bio_mrc, "questions.jsonl", LINES, {}),
    "squad": (squad, "questions.jsonl", LINES, {}),
    "tagging": (tagging, "train.txt", "mary B-PER\nsat O\n", {}),
}


@pytest.mark.parametrize("name", FILES)
def test_the_setting_reaches_the_trained_loss(tmp_path, name):
    settings, file, text, changes = FILES[name]
    (tmp_path / file).write_text(text)
    config = settings.get_config()
    config.update({"data": str(tmp_path / file), "validation_share": 0.0, **changes})
    read = tasks.module_of(name, "job").read
    assert read(config).task(None).smoothing == 0.0
    config.label_smoothing = 0.3
    assert read(config).task(None).smoothing == 0.3


def test_numbers_and_several_labels_have_no_smoothed_targets(tmp_path):
    (tmp_path / "rows.csv").write_text('text,label\ngood,"a,b"\nbad,a\n')
    config = table.get_config()
    config.update({"data": str(tmp_path / "rows.csv"), "validation_share": 0.0, "text": "text", "label": "label"})
    config.update({"kind": "classes", "label_smoothing": 0.1})
    with pytest.raises(InputError, match=r"label_smoothing is 0.1, .*'classes'"):
        tasks.module_of("classification", "job").read(config)


@pytest.mark.parametrize("task", [Classification("class", 3), TokenLabels(3)])
def test_votes_and_hard_labels_are_smoothed_alike(task):
    """The loss of smoothed targets is that of targets smoothed by hand; rows that do not count stay out."""
    rng = np.random.default_rng(0)
    logits = {name: rng.standard_normal((2, 4, 3), np.float32) for name in ("sequence_logits", "token_logits")}
    target = rng.dirichlet(np.ones(3), (2, 4)).astype(np.float32)
    target[0] = np.eye(3)[[0, 1, 2, 0]]
    batch = {"targets": target, "target_weights": np.float32([[1, 1, 0, 0], [1, 1, 1, 0]])}
    batch["example_share"] = np.ones((2, 1), np.float32)
    by_hand = batch | {"targets": np.float32(0.8 * target + 0.2 / 3)}
    smoothing = dataclasses.replace(task, smoothing=0.2)
    assert float(smoothing.sums(logits, batch)["loss"]) == pytest.approx(float(task.sums(logits, by_hand)["loss"]))
    assert float(smoothing.sums(logits, batch)["loss"]) != pytest.approx(float(task.sums(logits, batch)["loss"]))
    assert smoothing.counts(batch).keys() == task.counts(batch).keys()


@pytest.mark.slow
def test_the_loss_is_that_of_torch():
    """`CrossEntropyLoss(label_smoothing=0.1)` on hard labels and on shares."""
    torch = pytest.importorskip("torch", reason="needs torch, see the slow tests in tests/bert/interop")
    rng = np.random.default_rng(0)
    logits, shares = rng.standard_normal((6, 4), np.float32), rng.dirichlet(np.ones(4), 6).astype(np.float32)
    theirs = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    hard = np.eye(4, dtype=np.float32)[[0, 1, 2, 3, 0, 1]]
    for target, as_torch in ((hard, torch.tensor(hard.argmax(1))), (shares, torch.tensor(shares))):
        ours = losses.soft_cross_entropy(jax.numpy.array(logits), losses.smoothed(jax.numpy.array(target), 0.1)).mean()
        assert float(ours) == pytest.approx(float(theirs(torch.tensor(logits), as_torch)), rel=1e-5)


def test_starts_and_ends_are_smoothed_over_the_windows_own_positions():
    """A window of three tokens behind another one, before padding: classes of its own."""
    scores_BT = jax.numpy.array([[9.0, 9.0, 0.7, 0.0, -1.0, 9.0]])
    batch = {
        "example_ids": np.array([[1, 1, 2, 2, 2, 0]]), "cls_positions": np.array([[0, 2, 0]]),
        "start": np.array([[0, 0, 0]]), "end": np.array([[0, 2, 0]]), "target_weights": np.array([[0.0, 1.0, 0.0]]),
    }  # fmt: skip
    found = StartAndEnd(0.3).sums({"start_logits": scores_BT, "end_logits": scores_BT}, batch)["loss"]
    targets = (0.7 * np.eye(3)[[0, 2]] + 0.1).astype(np.float32)
    wanted = [float(losses.soft_cross_entropy(scores_BT[0, 2:5], target)) for target in targets]
    assert float(found) == pytest.approx(np.mean(wanted))
