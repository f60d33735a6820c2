"""Start and end of answers: targets in windows, and the loss by its definition."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.data import encoded_examples
from bert.errors import InputError
from bert.prediction import questions
from bert.prediction.questions import Query
from bert.prediction.squad import SquadOptions
from bert.tokenizer.alignment import Pieces
from tasks.squad.job import StartAndEnd, windows_with_answers
from tests.bert.prediction.table_model import GOLDEN
from tests.tasks.squad.squad_questions import SMALL, TOKENIZER, question


def encoded(rows, options=SMALL, without="null"):
    """(the windows with their targets, the same as they were cut, where the pieces stand)."""
    cut, pieces_N = questions.windows_of([Query(row.question, row.context, row.id) for row in rows], TOKENIZER, options)
    return windows_with_answers(cut, rows, pieces_N, without), cut, pieces_N


# ---- targets ----

# 157 letters, each a token; questions of two tokens leave room for 114 of them.
LETTERS = " ".join("abcdefghijklmnopqrstuvwxyz"[i % 26] for i in range(157))
WIDE = SquadOptions(max_length=114 + 5, window_step=64)
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
    with pytest.raises(InputError, match=r"no window holds .*max_length"):
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
        batch = encoded_examples.assemble(found, members, length, 10, slots)
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
