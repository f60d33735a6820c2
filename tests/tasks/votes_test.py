"""Votes as distributions: disagreement is kept, whoever votes first, whoever is absent."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from ml_collections import ConfigDict

from bert.errors import InputError
from bert.model.losses import soft_cross_entropy
from tasks import votes
from tasks.votes import NONE, VoteSettings, check_names, settings_of

B, I, O = range(3)  # noqa: E741


def target(tags: dict[str, list[int]], weights=None, how="soft", outside=O):
    counts_KC = votes.counts([(name, np.array(given)) for name, given in tags.items()], 3, weights or {})
    return votes.target(counts_KC, VoteSettings(weights or {}, how), outside)


def test_two_of_three_say_b():
    """B, B, O: (2/3, 0, 1/3). At logits (ln 4, 0, 0) that costs 0.867563 nats, the majority's B 0.405465."""
    logits_C = jnp.array([np.log(4), 0.0, 0.0])
    tags = {"a": [B], "b": [B], "c": [O]}
    soft, voted_K = target(tags)
    np.testing.assert_allclose(soft, [[2 / 3, 0, 1 / 3]], atol=1e-7)
    assert (soft.dtype, voted_K.tolist()) == (np.float32, [True])
    assert float(soft_cross_entropy(logits_C, soft[0])) == pytest.approx(0.867563, abs=1e-6)
    hard, _ = target(tags, how="majority")
    assert hard.tolist() == [[1, 0, 0]]
    assert float(soft_cross_entropy(logits_C, hard[0])) == pytest.approx(0.405465, abs=1e-6)


@pytest.mark.parametrize("how", votes.CHOICES)
def test_the_order_of_annotators_changes_nothing(how):
    """All orders of four annotators with odd weights, 50 random tokens."""
    rng = np.random.default_rng(0)
    given = {name: rng.integers(-1, 3, 50).tolist() for name in "abcd"}
    weights = {"a": 0.1, "b": 0.2, "c": 0.3}
    want, _ = target(given, weights, how)
    for order in itertools.permutations("abcd"):
        found, _ = target({name: given[name] for name in order}, weights, how)
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-7)
        if how == "majority":
            np.testing.assert_array_equal(found, want)


def test_who_gave_no_tag_leaves_the_share_to_the_others():
    """A token without any vote has no target; one with a single vote is that tag."""
    soft, voted_K = target({"a": [B, NONE, NONE], "b": [O, I, NONE], "c": [NONE, NONE, NONE]})
    assert soft.tolist() == [[0.5, 0, 0.5], [0, 1, 0], [0, 0, 0]]
    assert voted_K.tolist() == [True, True, False]
    hard, voted_K = target({"a": [B, NONE], "b": [B, NONE]}, how="majority")
    assert hard.tolist() == [[1, 0, 0], [0, 0, 0]], "not even O where nobody voted"
    assert voted_K.tolist() == [True, False]


def test_votes_weigh_as_told():
    """anna counts 2, ben 1/2, whoever is not named 1: B 2, O 1.5; a weight of 0 is no vote."""
    tags = {"anna": [B], "ben": [O], "cleo": [O]}
    np.testing.assert_allclose(target(tags, {"anna": 2.0, "ben": 0.5})[0], [[2 / 3.5, 0, 1.5 / 3.5]], atol=1e-7)
    assert target(tags, {"anna": 0.0})[0].tolist() == [[0, 0, 1]]
    soft, voted_K = target({"anna": [B]}, {"anna": 0.0})
    assert (soft.tolist(), voted_K.tolist()) == ([[0, 0, 0]], [False])


def test_ties_go_to_o_and_else_to_the_first():
    tags = {"a": [B, B, I], "b": [I, O, O]}
    assert target(tags, how="majority")[0].argmax(1).tolist() == [B, O, O]
    assert target(tags, how="majority", outside=None)[0].argmax(1).tolist() == [B, B, I]


def test_sums_of_weights_tie_though_they_are_rounded():
    """0.1 + 0.2 for B is not above 0.3 for O."""
    tags, weights = {"a": [B], "b": [B], "c": [O]}, {"a": 0.1, "b": 0.2, "c": 0.3}
    assert 0.1 + 0.2 > 0.3
    assert target(tags, weights, "majority")[0].tolist() == [[0, 0, 1]]


def weights_from(told: str) -> dict[str, float]:
    return dict(settings_of(ConfigDict({"annotator_weights": told, "votes": "soft"})).weights)


def test_weights_as_people_write_them():
    assert weights_from(" anna=2, ben = 0.5 ,x=y=0") == {"anna": 2.0, "ben": 0.5, "x=y": 0.0}
    assert weights_from("") == {}


@pytest.mark.parametrize("told", ["anna", "anna=", "=2", "anna=-1", "anna=nan", "anna=inf", "anna=2=", "ben=1,anna=x"])
def test_weights_that_are_none_are_refused(told):
    part = told.split(",")[-1]
    with pytest.raises(InputError, match=f"_weights: '{part}' .*NAME=NUMBER"):
        weights_from(told)


def test_names_that_stand_twice_or_nowhere_are_refused():
    with pytest.raises(InputError, match=r"_weights names 'anna' twice"):
        weights_from("anna=1,ben=2,anna=3")
    settings = VoteSettings({"anna": 1.0, "bne": 2.0})
    check_names(settings, ["anna", "bne"])
    with pytest.raises(InputError, match=r"_weights names 'bne'; .*anna, ben$"):
        check_names(settings, ["ben", "anna"])
    with pytest.raises(InputError, match=r"'anna'; .* 0, 1, .*9 \.\.\.$"):
        check_names(settings, list("0123456789x"))
    with pytest.raises(InputError, match="is 0 for every annotator"):
        check_names(VoteSettings({"anna": 0.0, "ben": 0.0}), ["anna", "ben"])
    check_names(VoteSettings({"anna": 0.0}), ["anna", "ben"])


def test_another_way_to_count_is_refused():
    with pytest.raises(InputError, match=r"votes is 'hard'; .*soft, majority"):
        VoteSettings({}, "hard")
