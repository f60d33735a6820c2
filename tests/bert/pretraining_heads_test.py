"""The heads of pretraining in a loaded model: masks are filled, and sentences compared, by name."""

import pathlib

import numpy as np
import pytest

import bert
from bert.errors import InputError


@pytest.fixture(scope="module")
def tiny():
    return bert.load(pathlib.Path(__file__).resolve().parents[1] / "golden" / "tiny_bert")


def test_masks_are_filled_in_order_with_the_reference_probabilities(tiny):
    """Two masks: two ranked lists, which are the softmax of the logits at the two places over the whole vocabulary."""
    found = tiny.fill_mask("the [MASK] sat on [MASK]!", top=3)
    ids = [2, *tiny.tokenizer.encode("the [MASK] sat on [MASK]!", special_in_text=True).ids, 3]
    logits_TV = tiny.outputs([ids])["mlm_logits"][0]
    for position, ranked in zip([i for i, token in enumerate(ids) if token == 4], found, strict=True):
        share_V = np.exp(logits_TV[position] - logits_TV[position].max())
        share_V /= share_V.sum()
        best = np.argsort(-share_V)[:3]
        assert [token for token, _ in ranked] == [tiny.tokenizer.vocab[i] for i in best]
        np.testing.assert_allclose([share for _, share in ranked], share_V[best], rtol=0, atol=1e-5)


def test_a_text_that_is_too_long_is_filled_where_the_model_reads_it(tiny, caplog):
    """The last place is [SEP]'s; a mask just before it is still filled, one at it is refused."""
    text = "cat " * 61 + "[MASK]" + " cat" * 600
    assert tiny.fill(text).startswith("cat " * 61)
    assert caplog.messages[0].startswith("1 of 1 texts are longer than the model's 64 positions")
    for fill in (tiny.fill, tiny.fill_mask):
        with pytest.raises(InputError, match="mask at 63, limit 64"):
            fill("cat " + text)


def test_without_a_masked_word_head_nothing_is_filled(variant):
    model = variant(drop=["cls."])
    with pytest.raises(InputError, match=r"mlm head .*encoder, pooler"):
        model.fill_mask("the [MASK]")
    assert model.outputs([[2, 3]]).keys() == {"sequence_output", "pooled_output"}


def test_next_sentence_has_names(variant):
    """Bias [5, -5] and no weight: B follows A with probability 0.99995, whatever the texts."""
    model = variant(
        tensors={
            "cls.seq_relationship.bias": np.array([5, -5], np.float32),
            "cls.seq_relationship.weight": np.zeros((2, 32), np.float32),
        }
    )
    found = model.predict_next_sentence("the cat", "sat on the mat")
    assert list(found) == ["is_next", "random"]
    assert round(found["is_next"], 5) == 0.99995
    assert found["is_next"] + found["random"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({"objective": "sop", "step": 7}, ["in_order", "swapped"]),
        ({"objective": "nsp", "step": 7}, ["is_next", "random"]),
        ({"objective": "another"}, ["is_next", "random"]),
        ("words of another program", ["is_next", "random"]),
    ],
)
def test_next_sentence_names_are_those_of_the_objective(variant, tmp_path, said, names):
    """A model trained with sentence order says "swapped", also once saved again; others say what Google's do."""
    model = variant(pretraining=said)
    assert list(model.predict_next_sentence("the cat", "sat")) == names
    assert list(bert.load(bert.save(model, tmp_path / "out")).predict_next_sentence("the cat", "sat")) == names


def test_next_sentence_reads_both_texts_in_their_segments(tiny):
    a, b = "the cat sat", "who is john"
    ids_a, ids_b = (tiny.tokenizer.encode(text).ids for text in (a, b))
    types = [0] * (len(ids_a) + 2) + [1] * (len(ids_b) + 1)
    logits = tiny.outputs([[2, *ids_a, 3, *ids_b, 3]], [types])["nsp_logits"][0]
    assert tiny.predict_next_sentence(a, b)["random"] == pytest.approx(
        1 / (1 + np.exp(logits[0] - logits[1])), abs=1e-5
    )
    assert tiny.predict_next_sentence(a, b) != tiny.predict_next_sentence(b, a)


def test_next_sentence_without_its_head_is_refused(variant):
    model = variant(drop=["cls.seq_relationship", "bert.pooler"])
    with pytest.raises(InputError, match="has no next_sentence head"):
        model.predict_next_sentence("a", "b")
    with pytest.raises(InputError, match="has no pooler head"):
        model.embed(["a"], pooling="pooler")
