import gzip
import random
import textwrap

import pytest

from bert.text.layout import PARAGRAPHS, SECTION_CHARS, SENTENCES, WRAPPED, cut_sections, layout_of, split_sentences

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
    wanted = {"corpus_gutenberg_en": WRAPPED, "corpus_wikitext2": PARAGRAPHS, "corpus_wiki_zh": SENTENCES}
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
