import gzip
import random
import textwrap

import pytest

from bert.corpus.layout import (
    PARAGRAPHS,
    SECTION_CHARS,
    SENTENCES,
    WRAPPED,
    cut_sections,
    layout_of,
    share_inside_sentences,
    split_sentences,
)

PROSE = (
    "The keeper of the lighthouse had not slept for two nights. He climbed the stairs again, counting each of them, "
    "and found the lamp as he had left it. Far below, the waves broke on the rocks; nobody would come before spring. "
    "Mr. Hale had told him so. He believed it now."
)

CHINESE = "\u4e2d\u56fd\u4eba\u6c11\u5f88\u591a\uff0c\u56fd\u4eba\u4e5f\u591a\u3002\u4eba\u6c11\u5f88\u591a\u3002"


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        (PROSE.replace(". ", ".\n"), SENTENCES),
        ("\n\n".join(["One short line.", "Another one, alone.", "And a third."]), SENTENCES),
        ("\n".join([PROSE] * 3), PARAGRAPHS),
        ("\n\n".join([PROSE] * 3), PARAGRAPHS),
        (PROSE, PARAGRAPHS),
        ("= Title =\n\n" + PROSE + "\n\n= Next =\n\n" + PROSE, PARAGRAPHS),
        (textwrap.fill(PROSE * 3, 72), WRAPPED),
        ("\n\n".join([textwrap.fill(PROSE, 60)] * 4), WRAPPED),
        ("\n\n".join([textwrap.indent(textwrap.fill(PROSE, 40), "    ")] * 4), WRAPPED),
        ("\n".join(["ACGTACGTAGGCTAAC" * 4] * 50), SENTENCES),
        ("\n".join(textwrap.wrap(CHINESE * 12, 31)), WRAPPED),
        ("\n".join(["\u5f88\u591a", "\u4e2d\u56fd\u4eba", "\u4eba\u6c11\u5f88\u591a"] * 20), SENTENCES),
        ("\n".join(["\u4e2d\u56fd\u4eba\u6c11\u5f88\u591a\u3002"] * 50), SENTENCES),
        ("", SENTENCES),
        ("word", SENTENCES),
    ],
)
def test_layouts_are_told_apart(text, layout):
    """Google's format, paragraphs on long lines, and hard-wrapped text; sequences without blanks are no prose."""
    assert layout_of(text) == layout


def test_real_corpora_are_recognised(shared):
    """E-books are wrapped, encyclopedia lines are paragraphs, Chinese sentences stand one a line."""
    wanted = {
        "corpus_gutenberg_en": WRAPPED,
        "corpus_wikitext2": PARAGRAPHS,
        "corpus_wiki_zh": SENTENCES,
        "corpus_debian_faq": WRAPPED,  # English, Russian, and in columns of a terminal Chinese, Japanese and Korean
    }
    for folder, layout in wanted.items():
        for path in sorted((shared / "data" / folder).glob("*.gz")):
            text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace").replace("\r\n", "\n")
            assert layout_of(text) == layout, path.name


def test_sentences_of_each_layout():
    """Lines stay lines, paragraphs are split, and wrapped lines are joined before they are split."""
    assert split_sentences("One. Two.\nThree.", SENTENCES) == ["One. Two.", "Three."]
    assert split_sentences("One. Two.\nThree.", PARAGRAPHS) == ["One.", "Two.", "Three."]
    wrapped = "He went\nhome. She\nstayed.\n\nNext\nparagraph"
    assert split_sentences(wrapped, WRAPPED) == ["He went home.", "She stayed.", "Next paragraph"]
    chinese = split_sentences(CHINESE[:5] + "\n" + CHINESE[5:] + "\nOne", WRAPPED, "zh")
    assert chinese == [CHINESE[:12], CHINESE[12:], "One"]
    quoted = split_sentences("\u201c" + CHINESE[:5] + "\u201d\n\u2014\u2014" + CHINESE[5:11], WRAPPED, "zh")
    assert quoted == ["\u201c" + CHINESE[:5] + "\u201d\u2014\u2014" + CHINESE[5:11]]
    assert split_sentences("\u201cone\u201d\n\u201ctwo\u201d", WRAPPED) == ["\u201cone\u201d \u201ctwo\u201d"]
    assert split_sentences("One. Two.", "auto") == ["One.", "Two."]
    assert split_sentences("One.\nTwo.", "auto") == ["One.", "Two."]
    assert split_sentences("Mr. Hale slept. So did I.", "split") == ["Mr. Hale slept.", "So did I."]


def test_white_space_of_any_kind_becomes_a_blank_and_empty_sentences_vanish():
    """Form feeds, tabs and wide blanks do not glue words together, nor make empty sentences."""
    text = "note\x0cbook\t one\u3000two\n \x0b \n\u00a0\n"
    for layout in (SENTENCES, PARAGRAPHS, WRAPPED):
        assert split_sentences(text, layout) == ["note book one two"]
        assert split_sentences("", layout) == []


def test_sections_put_together_are_the_text():
    """Long texts are cut at line ends (wrapped ones at blank lines) and nothing is lost or doubled."""
    lines = [f"line {i} of a long text that somebody wrote\n" for i in range(12_000)]
    blocks = [line if i % 7 else line + "\n" for i, line in enumerate(lines)]
    pieces = [piece for block in blocks for piece in block.splitlines(keepends=True)]
    for layout in (SENTENCES, WRAPPED):
        sections = list(cut_sections(pieces, layout))
        assert "".join(sections) == "".join(pieces)
        assert len(sections) >= 4
        assert all(section.endswith("\n") for section in sections)
        assert all(len(section) >= SECTION_CHARS for section in sections[:-1])
    assert all(section.endswith("\n\n") for section in sections[:-1])


def test_text_without_any_line_end_is_cut_all_the_same():
    """No text is so odd that a section grows without bound."""
    pieces = ["x" * 1000] * 1000
    sections = list(cut_sections(pieces, WRAPPED))
    assert "".join(sections) == "".join(pieces)
    assert max(map(len, sections)) <= 2 * SECTION_CHARS + 1000


def test_sentences_of_like_length_are_not_taken_for_wrapped_text():
    """Forty lines of 26 to 30 characters, each one sentence: a line is a sentence, blank lines separate documents."""
    rng = random.Random(0)
    words = ["keeper", "lamp", "stairs", "sea", "storm", "night", "ship", "rock", "wind", "light"]
    lines = [f"the {rng.choice(words)} the {rng.choice(words)} {rng.choice(words)} ." for _ in range(40)]
    assert layout_of("\n".join(lines)) == SENTENCES


rng = random.Random(1)


def word(low=2, high=9):
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(low, high)))


def words(count):
    return " ".join(word() for _ in range(count))


def up_to(width):
    """Words up to about this width, as nobody wraps a text: no line is longer, some are a word shorter."""
    line = word()
    while len(line) < width:
        line += " " + word()
    return line


def sentence(low=4, high=20):
    return words(rng.randint(low, high)).capitalize() + "."


def dialogue(between):
    """A book with many short lines of speech, wrapped at 72 columns, its paragraphs apart by `between`."""
    speech = lambda: "\u2014 " + sentence(1, 3) + (" " + sentence() if rng.random() < 0.3 else "")  # noqa: E731
    told = lambda: " ".join(sentence() for _ in range(rng.randint(1, 5)))  # noqa: E731
    paragraphs = [speech() if rng.random() < 0.8 else told() for _ in range(300)]
    return between.join(textwrap.fill(paragraph, 72) for paragraph in paragraphs)


def time():
    return f"2031-{rng.randint(10, 12)}-{rng.randint(10, 28)} {rng.randint(10, 23)}:{rng.randint(10, 59)}"


RECORDS = {
    "one width": lambda: " ".join(word(6, 6) for _ in range(12)),
    "log": lambda: (
        f"{time()} INFO worker {rng.randint(0, 7)} served {rng.randint(0, 999999)} in {rng.randint(1, 999)} ms"
    ),
    "log of Java": lambda: f"{time()} INFO [{word()}] com.{word()}.{word().title()}: took {rng.randint(1, 999)} ms",
    "log with ragged words": lambda: f"{rng.choice(['INFO', 'WARNING', 'ERROR'])}:{word()}:{word()} took {word()} ms",
    "addresses": lambda: f'10.{rng.randint(0, 255)}.{rng.randint(0, 255)}.7 - - [{time()}] "GET /{word()} HTTP/1.1"',
    "small letters": lambda: f"user {word()} came from 10.0.{rng.randint(0, 255)}.{rng.randint(0, 255)} at {word()}",
    "table": lambda: f"{word():12}{rng.randint(1, 99999):>10}  {word():12}{word()}",
    "right-aligned table": lambda: f"{rng.randint(1, 99999):>10}  {word():12} {word():10} {rng.randint(1, 999):>5}",
    "table with rules": lambda: f"| {word():12} | {rng.randint(1, 99999):>10} | {word():12} |",
    "names": lambda: f"{word().title()} {word().title()} {word().title()}",
    "searches": lambda: words(6),
    "nearly one width": lambda: up_to(76),
    "Hindi": lambda: " ".join("\u0915\u0916\u0917"[: rng.randint(1, 3)] for _ in range(rng.randint(9, 11))) + "\u0964",
}


@pytest.mark.parametrize("kind", RECORDS)
def test_records_are_not_joined(kind):
    """However alike in width: a log, a table or a list has no sentences that go on from line to line."""
    lines = [RECORDS[kind]() for _ in range(300)]
    text = "\n".join(lines)
    assert layout_of(text) == SENTENCES
    assert split_sentences(text, "auto") == [" ".join(line.split()) for line in lines]


def test_verse_is_not_joined_and_its_lines_are_known_to_end_inside_sentences():
    """Lines of like length that begin with capitals; in prose, small letters begin most lines."""
    text = "\n\n".join("\n".join(up_to(34).capitalize() + rng.choice(",,; .") for _ in range(4)) for _ in range(50))
    assert layout_of(text) == SENTENCES
    assert share_inside_sentences(text) > 0.3


@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_a_book_with_much_dialogue_is_wrapped(between):
    """Most lines are short and end as sentences do; those that are continued below are filled all the same."""
    assert layout_of(dialogue(between)) == WRAPPED


@pytest.mark.parametrize("prefix", ["", "> ", "# ", "    "])
@pytest.mark.parametrize("width", [40, 72, 200])
def test_prose_is_wrapped_at_any_width_and_with_any_mark(width, prefix):
    text = " ".join(sentence() for _ in range(300))
    assert layout_of(textwrap.indent(textwrap.fill(text, width), prefix)) == WRAPPED


def test_lines_that_end_inside_sentences():
    """Commas at their ends and small letters below tell so; whole sentences, and text in small letters, do not."""
    sentences = [sentence() for _ in range(40)]
    assert share_inside_sentences("\n".join(sentences)) == 0
    assert share_inside_sentences("\n".join(sentences).lower()) == 0
    assert share_inside_sentences("\n".join(words(5) for _ in range(40))) == 0
    halves = "\n".join(one.replace(" ", "\n", 1) for one in sentences)
    assert share_inside_sentences(halves) == pytest.approx(0.5, abs=0.01)
    assert share_inside_sentences("\n".join(one.replace(".", ",") for one in sentences)) == 1
    assert share_inside_sentences("one,\ntwo,\nthree") == 0
