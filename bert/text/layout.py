"""How a text is laid out on its lines, and its sentences. Pure functions on strings.

Three layouts, told apart by `layout_of`:

    sentences    a line is a sentence, blank lines separate documents (Google's format for pretraining text)
    paragraphs   a line is a paragraph of several sentences, blank lines are only space
    wrapped      lines are broken at a fixed width, blank lines separate paragraphs (e-books, plain-text mail)
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import sentencex

SENTENCES, PARAGRAPHS, WRAPPED = "sentences", "paragraphs", "wrapped"
LAYOUTS = (SENTENCES, PARAGRAPHS, WRAPPED)
SAMPLE_CHARS = 1 << 18  # the layout is decided on the beginning of a text
SECTION_CHARS = 100_000  # long documents are handled, and held out, in pieces of about this size
MAX_WRAP_WIDTH = 120  # characters; longer lines are not broken by a fixed width
SENTENCE_END = re.compile(r"[.!?…。！？]\W*$")
LONG_WORD = 15  # characters of a next word that count; more would make lists of long words look filled
# Thai, Lao, Burmese, Khmer, Chinese and Japanese have no blanks between words; a line may be broken after any of these.
_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u312f\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff"
)
_MARKS = "[\u2010-\u2027]*"  # dashes, quotation marks, the ellipsis: of these scripts where they stand beside a letter
UNSPACED_START, UNSPACED_END = re.compile(f"{_MARKS}[{_LETTERS}]"), re.compile(f"[{_LETTERS}]{_MARKS}$")
MIN_UNSPACED_WIDTH = 15  # characters; narrower ones are lists and verse


def layout_of(text: str, language: str = "en") -> str:
    """Layout of a text, decided on its first 262,144 characters.

    "wrapped": at least 4 lines have a line below them, and 60 % of those are filled: the first word below would not
    have fitted into the width that 95 % of the lines keep to, which is at most 120 characters (in scripts without
    blanks at least 15), and at most half of the lines end as sentences do. Else "paragraphs": more than half of the
    text is in lines that hold two sentences or more. Else "sentences".
    """
    lines = [line.strip() for line in text[:SAMPLE_CHARS].split("\n")]
    if _is_wrapped(lines):
        return WRAPPED
    several = sum(len(line) for line in lines if len(sentencex.segment(language, line)) > 1)
    return PARAGRAPHS if 2 * several > sum(map(len, lines)) else SENTENCES


def resolve_layout(wanted: str, sample: str, language: str) -> str:
    """One of LAYOUTS: `wanted` itself, or for "auto" and "split" what the sample looks like."""
    if wanted not in ("auto", "split"):
        return wanted
    found = layout_of(sample, language)
    return PARAGRAPHS if wanted == "split" and found == SENTENCES else found


def _is_wrapped(lines: Sequence[str]) -> bool:
    pairs = [(line, below) for line, below in itertools.pairwise(lines) if line and below]
    # Where most lines end as sentences do, they are sentences, however alike in length.
    if len(pairs) < 4 or sum(SENTENCE_END.search(line) is not None for line, _ in pairs) > 0.5 * len(pairs):
        return False
    lengths = sorted(len(line) for line, _ in pairs)
    width = lengths[int(0.95 * (len(lengths) - 1))]
    if width > MAX_WRAP_WIDTH:
        return False
    return sum(_is_filled(line, below, width) for line, below in pairs) >= 0.6 * len(pairs)


def _is_filled(line: str, below: str, width: int) -> bool:
    """Whether the first word of the line below would not have fitted. Ragged margins end a little early, hence 0.9."""
    if UNSPACED_END.search(line[-4:]):
        return width >= MIN_UNSPACED_WIDTH and len(line) + 1 > 0.9 * width
    # A line without a blank is no prose.
    return " " in line and len(line) + 1 + min(len(below.split(None, 1)[0]), LONG_WORD) > 0.9 * width


def split_sentences(text: str, layout: str, language: str = "en") -> list[str]:
    """Sentences of a text, white space (form feeds and the like, too) made single blanks, empty ones left out.

    Args:
      text: lines separated by "\\n".
      layout: one of LAYOUTS, or "auto" to have it decided on this very text; "split" is "auto" without "sentences".
      language: two letters, for the rules of abbreviations in `sentencex`; unknown ones fall back to English.
    """
    layout = resolve_layout(layout, text, language)
    lines = [" ".join(line.split()) for line in text.split("\n")]
    if layout == SENTENCES:
        return [line for line in lines if line]
    paragraphs: Iterable[str] = lines
    if layout == WRAPPED:
        paragraphs = (_paragraph(block) for block in _blocks(lines))
    found = (one.strip() for paragraph in paragraphs if paragraph for one in sentencex.segment(language, paragraph))
    return [sentence for sentence in found if sentence]


def _paragraph(block: Sequence[str]) -> str:
    """Its lines in one, with a blank between two of them unless the script has none."""
    joined = [block[0]]
    for above, line in itertools.pairwise(block):
        joined += ("" if UNSPACED_END.search(above[-4:]) and UNSPACED_START.match(line) else " ", line)
    return "".join(joined)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Runs of lines between blank lines."""
    block: list[str] = []
    for line in lines:
        if line:
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


def cut_sections(pieces: Iterable[str], layout: str) -> Iterator[str]:
    """Texts of about SECTION_CHARS characters that put together are the lines, so that no document must fit in memory.

    Args:
      pieces: lines with their "\\n" (a very long line may come in several pieces without one).
      layout: "wrapped" text is cut at a blank line if one comes before twice the size, all other at a line's end.
    """
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        at_end = piece.endswith("\n") and (layout != WRAPPED or not piece.strip())
        if (size >= SECTION_CHARS and at_end) or size >= 2 * SECTION_CHARS:
            yield "".join(held)
            held, size = [], 0
    if held:
        yield "".join(held)
