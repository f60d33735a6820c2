"""B, I and O: which texts are tags, spans in them, and the mending of an I that continues nothing."""

import itertools

import numpy as np
import pytest

from bert.bio_tags import (
    are_bio,
    are_entities,
    begins,
    in_iob2,
    is_tag,
    merged_labels,
    parse,
    repaired,
    spans,
)

TYPED = ("I-PER", "O", "B-LOC", "B-PER", "I-LOC")


def allowed(tags) -> bool:
    """By the rule in words: an I comes after a B or I of its type."""
    return all(
        not tag.startswith("I") or before in ("B" + tag[1:], tag) for before, tag in itertools.pairwise(["O", *tags])
    )


@pytest.mark.parametrize("tag", ["O", "B", "I", "B-PER", "I-a-b", "B-人"])
def test_tags(tag):
    assert is_tag(tag)


@pytest.mark.parametrize(
    "text", ["B_PER", "b-per", "o", "0", "S-PER", "B-", "B- X", "PER", "NNP", "OO", "O-PER", "B-X\n", ""]
)
def test_other_texts_are_no_tags(text):
    assert not is_tag(text)
    assert not are_bio(("O", text))


def test_parts_of_a_tag():
    assert [parse(tag) for tag in ("B-PER", "O", "I", "B-a-b")] == [("B", "PER"), ("O", ""), ("I", ""), ("B", "a-b")]


@pytest.mark.parametrize(
    ("tags", "valid", "found"),
    [
        ("O I I O B", "O B I O B", [("", 1, 3), ("", 4, 5)]),
        ("I B I I B B", "B B I I B B", [("", 0, 1), ("", 1, 4), ("", 4, 5), ("", 5, 6)]),
        ("B-X I-Y I-Y O", "B-X B-Y I-Y O", [("X", 0, 1), ("Y", 1, 3)]),
        ("O O", "O O", []),
        ("I-X", "B-X", [("X", 0, 1)]),
        ("B-X O I-X", "B-X O B-X", [("X", 0, 1), ("X", 2, 3)]),
        ("B-I I-I I-B", "B-I I-I B-B", [("I", 0, 2), ("B", 2, 3)]),
        ("", "", []),
    ],
)
def test_stray_inside_tags_begin_a_span(tags, valid, found):
    assert repaired(tags.split()) == valid.split()
    assert spans(tags.split()) == spans(valid.split()) == found


def test_repaired_tags_are_always_valid():
    rng = np.random.default_rng(2)
    for _ in range(300):
        tags = [TYPED[i] for i in rng.integers(0, 5, 8)]
        assert allowed(repaired(tags))
        assert repaired(repaired(tags)) == repaired(tags)
        assert [tag[1:] for tag in repaired(tags)] == [tag[1:] for tag in tags]


def test_strictly_a_stray_inside_tag_is_in_no_span():
    assert spans(["I", "I", "B", "I"], strict=True) == [("", 2, 4)]
    assert spans(["B-X", "I-Y", "I-X", "O", "I-X", "B-X"], strict=True) == [("X", 0, 1), ("X", 5, 6)]


def test_nothing_is_known_after_a_word_without_a_tag():
    assert not begins(None, "I-X")
    assert begins("O", "I-X")
    assert begins("B-Y", "B-X")
    assert not begins("I-X", "B-X")
    assert repaired([None, "I-X", None, "I-Y", "I-X"]) == [None, "I-X", None, "I-Y", "B-X"]


def test_the_letters_of_all_schemes_are_one_in_iob2():
    for inside, end, single in ("IES", "ILU", "MES", "MEW"):
        tags = ["B-X", f"{inside}-X", f"{end}-X", f"{single}-X", "O", "B-Y", f"{end}-Y"]
        assert in_iob2(tags, "BES") == (["B-X", "I-X", "I-X", "B-X", "O", "B-Y", "I-Y"], 0)
    assert in_iob2(["[PAD]", "X", "S"]) == (["O", "O", "B"], 0)


@pytest.mark.parametrize(
    ("labels", "are"),
    [
        (("O", "B-X", "I-X", "E-X", "S-X"), True),
        (("[PAD]", "X", "O", "B-X", "I-X", "LABEL_4"), True),
        (("B", "M", "E", "S"), True),  # words of Chinese
        (("B", "I"), True),
        (("O", "B", "L", "U"), True),
        (("O",), True),
        (("O", "B_X", "I_X"), False),
        (("O", "PER", "LOC"), False),
        (("E", "S"), False),
        (("LABEL_0", "LABEL_1"), False),
        ((), False),
    ],
)
def test_labels_that_mark_spans(labels, are):
    assert are_entities(labels) == are


def test_labels_in_iob2_and_where_each_belongs():
    labels = ("S-X", "O", "E-X", "B-X", "[PAD]", "I-a-b")
    merged, index = merged_labels(labels)
    assert sorted(merged) == sorted(["O", "B-X", "I-X", "B-a-b", "I-a-b"])
    assert [merged[i] for i in index] == ["B-X", "O", "I-X", "B-X", "O", "I-a-b"]
    assert merged_labels(("B", "E"))[0] == ("O", "B", "I")


def test_a_span_that_may_have_begun_before_is_no_single_word():
    """Behind a word without a tag: it lacks its E in a scheme that has one, and needs no S."""
    tags = [None, "I-X", "O"]
    assert in_iob2(tags, "BE") == (tags, 1)
    assert in_iob2(tags, "BS") == (tags, 0)
