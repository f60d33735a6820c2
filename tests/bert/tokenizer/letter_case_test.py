import random

import pytest

from bert.tokenizer.letter_case import MANY_MARKS, lost_marks, merged_by_lower_case

RNG = random.Random(0)


def text(words, count=2000):
    return " , ".join(RNG.choice(words) for _ in range(count))


def test_pairs_that_only_letter_case_tells_apart():
    """Molecules: C is a carbon of a chain, c one of a ring; the most frequent pair comes first."""
    parts = ["C", "c", "C", "c", "N", "n", "CO", "co", "F", "(=O)", "[nH]"]
    molecules = ["-".join(RNG.choices(parts, k=9)) for _ in range(300)]
    found = merged_by_lower_case(molecules)
    assert {first.lower() for first, _ in found} == {"c", "n", "co"}
    assert found[0] in [("C", "c"), ("c", "C")]


def test_capitals_of_names_titles_and_sentences_are_no_such_pairs():
    """Prose has The and the, Captain and captain, some headings in capitals, and one or two others."""
    rows = [
        "The captain spoke . He said that Captain Hale and the king , or King Hale , were late . ANNUAL REPORT"
        for _ in range(99)
    ]
    assert merged_by_lower_case(rows) == []
    assert merged_by_lower_case(["So , us , US , it , IT" for _ in range(99)]) == []


def test_rare_pairs_do_not_count():
    words = [f"{letter}{i}" for i in range(300) for letter in "aA"]
    assert merged_by_lower_case([text(words)]) == []
    # Beside words fifteen times as frequent, or in a long text.
    assert merged_by_lower_case(["-".join(["", *["ab", "cd", "ef"] * 300, *["aB", "cD", "eF"] * 20])]) == []
    pairs = ["ab", "aB", "cd", "cD", "ef", "eF"] * 20
    assert merged_by_lower_case(["-".join(["", *pairs])])
    assert merged_by_lower_case(["-".join(["", *pairs, *["xy"] * 20_000])]) == []
    assert merged_by_lower_case([]) == []


def test_marks_that_the_removal_of_accents_takes():
    """One of the five characters of the Hindi word, a third of the kana, none of Latin, Greek and Cyrillic letters."""
    assert lost_marks(["\u0939\u093f\u0902\u0926\u0940 " * 9]) == pytest.approx(1 / 5)  # i and ii are spacing signs
    assert lost_marks(["\u304c\u304d\u304f"]) == pytest.approx(1 / 3)
    assert lost_marks(["caf\u00e9 \u03ac\u03bb\u03c6\u03b1 \u0439", "plain", ""]) == 0 < MANY_MARKS
