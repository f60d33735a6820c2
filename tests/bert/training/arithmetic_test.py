"""Arithmetic counts against published ones, and the peak of this machine."""

import pytest

from bert.architectures.bert import BertConfig
from bert.training import arithmetic


@pytest.mark.parametrize(("length", "predictions", "mega"), [(128, 20, 546), (512, 77, 588)])
def test_arithmetic_of_a_training_token_equals_the_published_counts(length, predictions, mega):
    """Base: 546 MFLOP a token at 128 and 588 at 512, masked positions only at the vocabulary, to a quarter percent."""
    base = BertConfig.of_size("base", vocab_size=30522)
    assert arithmetic.training_flops_per_token(base, length, predictions) / 1e6 == pytest.approx(mega, rel=2.5e-3)


def test_the_peak_of_this_cpu_is_measured_and_plausible():
    """Above one and below a million GFLOP/s: a unit off by a thousand would show."""
    assert 1e9 < arithmetic.peak_flops("float32") < 1e15
