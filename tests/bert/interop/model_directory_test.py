"""Parts of a head that a model lacks are made new when asked for, and only then; a classifier of others is replaced."""

import dataclasses

import numpy as np
import pytest

from bert.interop import names, parameters
from bert.interop.hugging_face import load_model_directory
from bert.interop.model_directory import with_fresh
from bert.interop.names import bert
from tests.bert.refusals import refused


def same(got, want):
    got, want = dict(parameters.flatten(got)), dict(parameters.flatten(want))
    return got.keys() == want.keys() and all(np.array_equal(got[path], want[path]) for path in want)


@pytest.fixture
def words_only(tiny_tensors, write):
    """A checkpoint with a masked-word head and nothing else."""
    dropped = ("bert.pooler", "cls.seq_relationship")
    return load_model_directory(write({n: t for n, t in tiny_tensors.items() if not n.startswith(dropped)}))


@pytest.fixture
def three_classes(golden):
    return load_model_directory(golden / "tiny_seqcls")


def test_parts_that_are_absent_stay_absent_or_are_made_new(words_only):
    """New ones are drawn from the seed with the deviation of the config, biases 0, and reported; others stay."""
    assert (words_only.parts, list(words_only.params["head"])) == (("encoder", "mlm"), ["mlm"])
    fresh = with_fresh(words_only, ("pooler", "mlm"), seed=1)
    assert fresh.parts == ("encoder", "mlm", "pooler")
    assert fresh.report.fresh == ["pooler"], "a part that is there is not made new"
    assert "pooler: new" in str(fresh.report)
    assert same(fresh.params["head"]["mlm"], words_only.params["head"]["mlm"])
    assert same(fresh.params["encoder"], words_only.params["encoder"])
    pooler = fresh.params["head"]["pooler"]
    assert 0.01 < pooler["kernel"].std() < 0.03
    assert not pooler["bias"].any()
    again, other = (with_fresh(words_only, ("pooler",), seed=seed).params["head"]["pooler"] for seed in (1, 2))
    assert same(again, pooler)
    assert not same(other, pooler)


def test_two_new_parts_of_one_shape_are_not_drawn_alike(words_only):
    head = with_fresh(words_only, ("pooler", "next_sentence", "span")).params["head"]
    assert head["span"]["kernel"].shape == head["next_sentence"]["kernel"].shape == (32, 2)
    assert not same(head["span"], head["next_sentence"])


def test_a_masked_word_head_can_be_new(three_classes):
    mlm = with_fresh(three_classes, ("mlm",)).params["head"]["mlm"]
    assert mlm["bias"].shape == (128,)
    assert np.array_equal(mlm["norm"]["scale"], np.ones(32))


def test_a_classifier_of_other_classes_is_replaced_and_told(three_classes):
    """Three classes in the file, two asked for: named with their shapes, the encoder as it was, two names kept."""
    two = with_fresh(three_classes, ("pooler", "sequence_classifier"), labels=("no", "yes"))
    assert two.labels == ("no", "yes")
    assert two.params["head"]["sequence_classifier"]["kernel"].shape == (32, 2)
    assert same(two.params["encoder"], three_classes.params["encoder"])
    assert same(two.params["head"]["pooler"], three_classes.params["head"]["pooler"])
    text = str(two.report)
    why = "sequence_classifier is made new for 2 classes (no, yes)"
    told = {"classifier.weight": f"shape [3, 32]; {why}", "classifier.bias": f"shape [3]; {why}"}
    assert two.report.replaced == told, "by the file's own names and shapes"
    assert f"replaced classifier.weight: shape [3, 32]; {why}" in text
    assert "sequence_classifier: new" in text
    assert not set(two.report.replaced) & set(two.report.used)
    assert len(two.report.used) == len(three_classes.report.used) - 2


def test_the_model_that_was_given_stays_as_it_was(three_classes):
    """Two heads made of one model, each with a report of its own."""
    before = str(three_classes.report)
    two = with_fresh(three_classes, ("sequence_classifier",), labels=("no", "yes"))
    four = with_fresh(three_classes, ("mlm", "sequence_classifier"), labels=("a", "b", "c", "d"))
    assert str(three_classes.report) == before
    assert two.report.fresh == ["sequence_classifier"]
    assert four.report.fresh == ["mlm", "sequence_classifier"]
    assert three_classes.params["head"]["sequence_classifier"]["bias"].shape == (3,)


def test_a_new_part_does_not_depend_on_what_other_parts_there_are(words_only, monkeypatch):
    """Neither on what else is new, nor on its place in the table, which grows with every head."""
    alone, beside = (with_fresh(words_only, parts).params["head"]["span"] for parts in (("span",), ("pooler", "span")))
    reverse = dataclasses.replace(bert.HUGGING_FACE, parts=dict(reversed(bert.HUGGING_FACE.parts.items())))
    monkeypatch.setitem(names.FAMILIES, "bert", (reverse, bert.GOOGLE))
    elsewhere = with_fresh(words_only, ("span",)).params["head"]["span"]
    assert same(alone, beside)
    assert same(alone, elsewhere)


def test_a_classifier_of_the_same_classes_is_kept_in_its_own_order(three_classes):
    same_names = with_fresh(three_classes, ("sequence_classifier",), labels=("neutral", "contradiction", "entailment"))
    assert same_names.labels == ("entailment", "neutral", "contradiction")
    assert same(same_names.params, three_classes.params)
    assert same_names.report.fresh == []


def test_a_classifier_of_the_other_kind_is_replaced(three_classes, golden):
    tags = with_fresh(three_classes, ("token_classifier",), labels=("B", "I", "O"))
    assert tags.parts == ("encoder", "pooler", "token_classifier")
    assert tags.labels == ("B", "I", "O")
    whole = with_fresh(load_model_directory(golden / "tiny_tokcls"), ("pooler", "sequence_classifier"), labels=("a",))
    assert set(whole.parts) == {"encoder", "pooler", "sequence_classifier"}


def test_what_cannot_be_made_new(words_only):
    with refused("'poolr'", "pooler, mlm, next_sentence"):
        with_fresh(words_only, ("poolr",))
    with refused("'encoder'", "new"):
        with_fresh(words_only, ("encoder",))
    with refused("token_classifier", "labels"):
        with_fresh(words_only, ("token_classifier",))
    with refused("sequence_classifier and token_classifier", "both"):
        with_fresh(words_only, ("pooler", "sequence_classifier", "token_classifier"), labels=("a", "b"))
    for part in ("next_sentence", "sequence_classifier"):
        with refused("safetensors", "no pooler", part):
            with_fresh(words_only, (part,), labels=("a", "b"))
