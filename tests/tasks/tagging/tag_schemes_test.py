"""Tags in files: which are refused, IOB1 and IOB2, types."""

import random

import pytest

from tasks.tagging.tag_schemes import (
    TaggedSentence,
    TagSettings,
    check_tags,
    check_types,
    detect_scheme,
    letters_of,
    to_iob2,
)
from tests.tasks.one_line import message_of, says


def row(*annotations, place="a.txt:1"):
    tags = tuple((str(i), tuple(one.split())) for i, one in enumerate(annotations, 1))
    return TaggedSentence(("w",) * len(tags[0][1]), tags, place, "1")


def in_iob1(tags):
    """IOB1 by its definition, from IOB2."""
    after_own = [before != "O" and before[2:] == tag[2:] for before, tag in zip(["O", *tags[:-1]], tags, strict=True)]
    return ["I" + tag[1:] if tag[0] == "B" and not own else tag for tag, own in zip(tags, after_own, strict=True)]


def random_iob2(rng, types):
    tags = []
    while len(tags) < rng.randint(1, 12):
        if rng.random() < 0.4:
            tags.append("O")
        else:
            kind = rng.choice(types)
            tags += ["B" + kind] + ["I" + kind] * rng.randint(0, 2)
    return tags


SPELLINGS = {"bioes": "IES", "bilou": "ILU", "bmes": "MES", "bmewo": "MEW"}  # of inside, end, single


def in_letters(tags, spelling):
    """BIOES and its like by their definition, from IOB2."""
    inside, end, single = spelling
    pairs = zip(tags, [*tags[1:], "O"], strict=True)
    last = [tag != "O" and after != "I" + tag[1:] for tag, after in pairs]
    by_letter = {("B", True): single, ("B", False): "B", ("I", True): end, ("I", False): inside, ("O", False): "O"}
    return [by_letter[tag[0], is_last] + tag[1:] for tag, is_last in zip(tags, last, strict=True)]


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("types", [("",), ("-PER", "-LOC", "-a-b")])
def test_schemes_with_ends_and_single_words_to_iob2(types, spelling):
    rng = random.Random(0)
    for _ in range(300):
        tags = random_iob2(rng, types)
        written = in_letters(tags, spelling)
        assert to_iob2(written, "bioes", "".join(sorted({"O", "B", *spelling}))) == (tuple(tags), 0)


@pytest.mark.parametrize(
    ("tags", "mended", "faults"),
    [
        ("I-X E-X O", "B-X I-X O", 1),  # no B
        ("O E-X E-X", "O B-X B-X", 2),
        ("B-X I-X O", "B-X I-X O", 1),  # no E
        ("B-X O S-X", "B-X O B-X", 1),  # one word, and no S
        ("B-X I-X", "B-X I-X", 1),
        ("B-X B-X E-X", "B-X B-X I-X", 1),
        ("B-X E-Y O", "B-X B-Y O", 1),
        ("S-X I-X E-X", "B-X B-X I-X", 1),
        ("B-X E-X I-X", "B-X I-X B-X", 2),  # neither B nor E
        ("? I-X E-X", "? I-X I-X", 0),  # nothing is known of the word before
        ("B-X ? E-X", "B-X ? I-X", 0),
        ("? I-X O", "? I-X O", 1),
    ],
)
def test_words_that_break_a_scheme_are_mended_by_one_rule_and_counted(tags, mended, faults):
    def given(text):
        return tuple(None if tag == "?" else tag for tag in text.split())

    assert to_iob2(given(tags), "bioes", "BEIOS") == (given(mended), faults)


def test_what_a_file_never_marks_is_no_fault():
    assert to_iob2(("B", "I", "O", "S", "B", "I"), "bioes", "BIOS") == (("B", "I", "O", "B", "B", "I"), 0)
    assert to_iob2(("I", "E", "O", "E"), "bioes", "EIO") == (("B", "I", "O", "B"), 0)  # IOE
    assert to_iob2(("B", "O", "B", "E"), "bioes", "BEO") == (("B", "O", "B", "I"), 0)


def test_letters_of_a_file():
    assert letters_of([row("O B-X E-X"), row("M-X", "U-X O")]) == "BEMOU"
    said = message_of(letters_of, [row("O S-X"), row("I-X", "U-X", place="a.txt:7")])
    assert says(said, "a.txt:7: ... U ... S ... a.txt:1 ... plain")


@pytest.mark.parametrize("types", [("",), ("-PER", "-LOC", "-a-b")])
def test_iob2_to_iob1_and_back(types):
    rng = random.Random(0)
    for _ in range(300):
        tags = random_iob2(rng, types)
        assert to_iob2(in_iob1(tags), "iob1") == (tuple(tags), 0)
        assert to_iob2(tags, "iob2") == (tuple(tags), 0)


@pytest.mark.parametrize(
    ("tags", "mended", "strays"),
    [
        ("I-X I-X O", "B-X I-X O", 1),
        ("O I-X B-Y I-X I-X", "O B-X B-Y B-X I-X", 2),
        ("B-X I-Y I-Y", "B-X B-Y I-Y", 1),
        ("B I O I I", "B I O B I", 1),
    ],
)
def test_an_i_that_continues_nothing_becomes_b(tags, mended, strays):
    assert to_iob2(tags.split(), "iob2") == (tuple(mended.split()), strays)
    assert to_iob2(tags.split(), "iob1") == (tuple(mended.split()), 0)  # there it is no fault
    assert to_iob2(tags.split(), "plain") == (tuple(tags.split()), 0)


def test_nothing_is_known_of_an_i_after_a_missing_tag():
    assert to_iob2((None, "I-X", None, "I-Y", "I-X"), "iob2") == ((None, "I-X", None, "I-Y", "B-X"), 1)
    assert detect_scheme([row("O")._replace(annotations=(("1", (None, "I-X")),))]) == "iob2"


@pytest.mark.parametrize(
    ("rows", "scheme"),
    [
        ([row("O O")], "iob2"),
        ([row("I-X O")], "iob1"),
        ([row("O I-X B-X I-X"), row("B-X I-X")], "iob2"),  # the second begins with B
        ([row("O I-X B-X I-X"), row("I-Y I-X")], "iob1"),
        ([row("B-X O I-X")], "iob2"),
        ([row("O I", "B O")], "iob2"),  # by the second annotator
        ([row("I-X B-Y")], "iob2"),
        ([row("I B I")], "iob1"),
    ],
)
def test_the_scheme_is_found(rows, scheme):
    assert detect_scheme(rows) == scheme


def test_a_random_file_is_known_by_its_scheme():
    rng = random.Random(1)
    sentences = [random_iob2(rng, ("-X", "-Y")) for _ in range(50)]
    assert detect_scheme([row(" ".join(tags)) for tags in sentences]) == "iob2"
    assert detect_scheme([row(" ".join(in_iob1(tags))) for tags in sentences]) == "iob1"


@pytest.mark.parametrize("tag", ["O", "B", "I", "B-PER", "I-a-b", "B-人", "E", "S-PER", "L-a-b", "U", "M", "W-X"])
def test_tags(tag):
    check_tags([None, tag], "auto", str)


@pytest.mark.parametrize("tag", ["B_PER", "b-per", "o", "S-PER", "B-", "B- X", "PER", "NNP", "OO", "O-PER", "B-X\n"])
def test_other_texts_are_no_tags(tag):
    said = message_of(check_tags, ["O", tag], "iob1", lambda i: f"a.txt:{i}")
    assert says(said, "a.txt:1: ... is no tag ... plain")
    check_tags([tag], "plain", str)


def test_a_tag_with_half_a_character_is_refused():
    """No file in UTF-8 could hold the names of such a model's classes."""
    said = message_of(check_tags, ["O", "x\ud800"], "plain", lambda i: f"a.txt:{i}")
    assert says(said, "a.txt:1: ... surrogate")


def test_an_empty_tag_is_none_in_any_scheme():
    for scheme in ("plain", "auto"):
        assert says(message_of(check_tags, [""], scheme, str), "0: a tag is empty;")


def test_types():
    for rows in ([row("O O"), row("B-X I-X")], [row("O O"), row("B I")], []):
        check_types(rows)
    mixed = [row("B O"), row("O", "I-X", place="a.txt:9")]
    assert says(message_of(check_types, mixed), "a.txt:9: I-X has a type and B has none")


@pytest.mark.parametrize(
    ("settings", "pieces"),
    [
        ({"scheme": "bio"}, "scheme is 'bio' ... iob1"),
        ({"delimiter": "[:"}, "'[:' ... regular expression"),
    ],
)
def test_settings_that_make_no_sense(settings, pieces):
    assert says(message_of(lambda: TagSettings(**settings)), pieces)
