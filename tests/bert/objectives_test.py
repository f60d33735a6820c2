"""The registry of objectives: which pairs stand beside each, and what an unknown one is told."""

import pytest

from bert import objectives
from bert.data.settings import BatchSettings
from bert.errors import InputError


def test_pairs_stand_beside_masked_words_only():
    assert [objectives.pairs_of("mlm", pairs) for pairs in (None, "sop", "none")] == ["nsp", "sop", "none"]
    assert objectives.pairs_of("causal", None) == "none"
    with pytest.raises(InputError, match=r"examples.objective is 'nsp'.*causal.*none"):
        objectives.pairs_of("causal", "nsp")
    with pytest.raises(InputError, match=r"'nsp'.*causal"):
        BatchSettings(batch_size=1, max_length=16, predicts="causal")


def test_an_unknown_objective_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"objective is 'clm'.*mlm.*causal"):
        objectives.pairs_of("clm", None)
