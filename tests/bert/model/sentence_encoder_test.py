"""How texts become vectors: choices of the caller on top of what is declared."""

import numpy as np
import pytest

from bert.model.sentence_encoder import NORMALIZE, SentenceEncoder
from tests.bert.refusals import refused

DENSE = {"kernel": np.zeros((64, 5), np.float32), "bias": np.zeros(5, np.float32)}
DECLARED = SentenceEncoder(("cls", "mean"), ("tanh", NORMALIZE), (DENSE,), max_length=9)


def test_widths():
    assert DECLARED.width(32) == 5
    assert DECLARED.changed(("max", "mean", "cls"), None).width(32) == 96


def test_none_is_as_declared():
    assert DECLARED.changed(None, None) is DECLARED
    assert DECLARED.changed(None, True) is DECLARED


def test_normalisation_is_the_last_layer_or_none():
    assert DECLARED.changed(None, False).layers == ("tanh",)
    assert DECLARED.changed("mean", None).layers == ()
    assert DECLARED.changed("mean", True).layers == (NORMALIZE,)
    between = SentenceEncoder(("mean",), (NORMALIZE, "tanh"), (DENSE,))
    assert between.changed(None, False) is between


def test_what_is_no_pooling_is_refused():
    for wrong in ("median", (), ("mean", "mean"), ("mean", "pooler"), 3):
        with refused("pooling is"):
            DECLARED.changed(wrong, None)


@pytest.mark.parametrize("wrong", ["no", "yes", 1])
def test_what_is_neither_true_nor_false_normalises_nothing(wrong):
    with refused(f"normalize is {wrong!r}", "True"):
        DECLARED.changed(None, wrong)
