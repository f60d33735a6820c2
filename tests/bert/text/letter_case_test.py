import random

from bert.text.letter_case import merged_by_lower_case

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
    assert merged_by_lower_case([]) == []
