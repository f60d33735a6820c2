"""Detects how a text is laid out in lines, and splits it into sentences. Pure functions of strings.

Three layouts, told apart by `layout_of`:

    sentences    a line is a sentence, blank lines separate documents (Google's format for pretraining text); so are
                 rows of logs and tables, and verse
    paragraphs   a line is a paragraph of several sentences, blank lines are only space
    wrapped      lines are broken at a fixed width, blank lines separate paragraphs (e-books, plain-text mail)
"""

import collections
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import sentencex

SENTENCES, PARAGRAPHS, WRAPPED = "sentences", "paragraphs", "wrapped"
LAYOUTS = (SENTENCES, PARAGRAPHS, WRAPPED)
SAMPLE_CHARS = 1 << 18  # the layout is decided on the beginning of a text
SECTION_CHARS = 100_000  # long documents are handled, and held out, in pieces of about this size
MAX_WRAP_WIDTH = 120  # characters; longer lines are not broken by a fixed width
# Of scripts that have marks of their own, such as Devanagari's danda.
_FULL_STOPS = "。！？\u061f\u06d4\u0589\u0964\u0965\u1362\u104b\u17d4"
SENTENCE_END = re.compile(rf"[.!?…{_FULL_STOPS}]\W*$")
ANY_END = re.compile(rf"[.!?…]\W*?(?:\s|$)|[{_FULL_STOPS}]")
LONG_WORD = 15  # characters of a next word that count; more would make lists of long words look filled
# Thai, Lao, Burmese, Khmer, Chinese and Japanese have no blanks between words; a line may be broken after any of these.
_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u312f\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff"
)
_MARKS = "[\u2010-\u2027]*"  # dashes, quotation marks, the ellipsis: of these scripts next to a letter
UNSPACED_START, UNSPACED_END = re.compile(f"{_MARKS}[{_LETTERS}]"), re.compile(f"[{_LETTERS}]{_MARKS}$")
MIN_UNSPACED_WIDTH = 15  # characters; narrower ones are lists and verse
# Characters that take two columns on a terminal (East Asian Width W and F): programs count columns when they wrap.
WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001f64f\U0001f900-\U0001f9ff\U00020000-\U0003fffd]"
)
DOT_OF_A_NAME = re.compile(r"[A-Za-z0-9]\.$")  # with no blank behind it
FIRST_LETTER = re.compile(r"[^\W\d_]")
INSIDE_SENTENCE = re.compile(r"[,;:\u3001\uff0c\uff1b\uff1a\u060c\u061b]$")
ENOUGH_LINES = 10  # fewer lines have a blank in one column, or capitals at their beginnings, by chance
LONGEST_SENTENCE = 10  # lines a sentence, on average; prose has one to five, what is above has no sentences


def layout_of(text: str, language: str = "en") -> str:
    """Layout of a text, decided on its first 262,144 characters: "wrapped" (see `_is_wrapped`), else "paragraphs" where
    more than half of the text is in lines of two sentences or more, else "sentences"."""
    lines = [line.expandtabs().rstrip() for line in text[:SAMPLE_CHARS].split("\n")]
    if _is_wrapped(lines):
        return WRAPPED

    def has_several(line: str) -> bool:
        """The dot of a name in a log (com.acme.Job) ends no sentence."""
        return not all(map(DOT_OF_A_NAME.search, sentencex.segment(language, line)[:-1]))

    several = sum(len(line) for line in lines if has_several(line.lstrip()))
    return PARAGRAPHS if 2 * several > sum(len(line.lstrip()) for line in lines) else SENTENCES


def resolve_layout(wanted: str, sample: str, language: str) -> str:
    """One of LAYOUTS: `wanted` itself, or for "auto" and "split" what the sample looks like."""
    if wanted not in ("auto", "split"):
        return wanted
    layout = layout_of(sample, language)
    return PARAGRAPHS if wanted == "split" and layout == SENTENCES else layout


def share_inside_sentences(text: str) -> float:
    """Share of the lines with a line below them that end inside a sentence; 0 for fewer than 10 of them.

    Such a line ends in a comma, a colon or a semicolon, or the line below begins with a small letter.
    """
    pairs = _pairs([line.rstrip() for line in text[:SAMPLE_CHARS].split("\n")])
    if len(pairs) < ENOUGH_LINES:
        return 0.0
    continued = set(_continued(pairs))
    inside = sum(INSIDE_SENTENCE.search(pair[0]) is not None or pair in continued for pair in pairs)
    return inside / len(pairs)


Pair = tuple[str, str]  # a line and the line below it, neither of them blank


def _pairs(lines: Sequence[str]) -> list[Pair]:
    return [(line, below) for line, below in itertools.pairwise(lines) if line and below]


def _is_wrapped(lines: Sequence[str]) -> bool:
    """Whether lines are broken by a width, wherever in a sentence that is. At least 4 have a line below them, and

    - of these at most half end as sentences do, and 60 % are filled: the first word below would not have fitted into
      the width that 95 % of the lines keep to, which is at most 120 columns (in scripts without blanks at least 15); or
    - a quarter of these, and at least 4, are continued by a small letter below, and 90 % of those are filled: dialogue
      in short lines hides the width from the first rule.

    Neither are the lines records, nor are there 10 of them for each sentence.
    """
    pairs = _pairs(lines)
    if len(pairs) < 4:
        return False
    # Where most lines end as sentences do, they are sentences, however alike in length.
    unfinished = sum(SENTENCE_END.search(line) is None for line, _ in pairs) >= 0.5 * len(pairs)
    filled = unfinished and _are_filled(pairs, pairs, 0.6, MAX_WRAP_WIDTH)
    if not filled:
        continued = _continued(pairs)
        filled = len(continued) >= max(4, 0.25 * len(pairs)) and _are_filled(continued, pairs, 0.9, SAMPLE_CHARS)
    return filled and not _are_records(pairs) and not _lacks_sentences(lines)


def _are_records(pairs: Sequence[Pair]) -> bool:
    """Whether the lines are rows of a table, a log or a poem, not the lines of a paragraph.

    Either four of five have a blank in the same column (not among the first four, where "> " and "- " have it), which
    one in five lines of prose has; or their first letters are capitals where small letters begin other words.
    """
    if len(pairs) < ENOUGH_LINES:
        return False
    pairs = pairs[:: -(-len(pairs) // 100)]
    margin = min(len(line) - len(line.lstrip()) for line, _ in pairs)
    blanks: collections.Counter[int] = collections.Counter()
    for line, _ in pairs[:: len(pairs) // 8]:  # few columns are blank in half of these
        start = max(len(line) - len(line.lstrip()), margin + 4)
        blanks.update(column for column in range(start, len(line)) if line[column] == " ")
    for column, count in blanks.items():
        if count >= 4 and sum(line[column : column + 1] == " " for line, _ in pairs) > 0.8 * len(pairs):
            return True
    begun_small = sum(_begins_small(below) for _, below in pairs) / len(pairs)
    inner = [word for line, _ in pairs for word in line.split()[1:] if word[0].isalpha()]
    return begun_small < 0.25 * sum(word[0].islower() for word in inner) / max(len(inner), 1)


def _lacks_sentences(lines: Sequence[str]) -> bool:
    """Whether the lines would be joined without end. Text without blanks is left out, for Thai marks no sentences."""
    filled = [line for line in lines if line]
    if len(filled) < ENOUGH_LINES or len(filled) <= LONGEST_SENTENCE * (1 + len(ANY_END.findall("\n".join(filled)))):
        return False
    return 2 * sum(UNSPACED_END.search(line[-4:]) is not None for line in filled) <= len(filled)


def _begins_small(line: str) -> bool:
    return (letter := FIRST_LETTER.search(line)) is not None and letter.group().islower()


def _continued(pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs of lines with a sentence across both: the first ends inside it, the second begins with a small letter.

    None where lines below the end of a sentence begin with small letters as well, as in scripts without capitals.
    """
    finished = [SENTENCE_END.search(line) is not None for line, _ in pairs]
    small = [_begins_small(below) for _, below in pairs]
    if 2 * sum(map(all, zip(finished, small, strict=True))) >= sum(finished):
        return []
    return [pair for pair, done, goes_on in zip(pairs, finished, small, strict=True) if goes_on and not done]


def _are_filled(chosen: Sequence[Pair], pairs: Sequence[Pair], share: float, most: int) -> bool:
    """Whether this share of the chosen lines is filled to the width that 95 % of all keep to, which is at most `most`.

    The width is counted in characters of the line, or in columns of a terminal with its indentation.
    """

    def columns(line: str) -> int:
        return len(line) if line.isascii() else len(line) + len(WIDE.findall(line))

    for measure in (lambda line: len(line.lstrip()), columns):
        widths = sorted(measure(line) for line, _ in pairs)
        width = widths[int(0.95 * (len(widths) - 1))]
        if width <= most and sum(_is_filled(*pair, width, measure) for pair in chosen) >= share * len(chosen):
            return True
    return False


def _is_filled(line: str, below: str, width: int, measure: Callable[[str], int]) -> bool:
    """Whether the first word of the line below would not have fitted. Ragged margins end a little early, hence 0.9."""
    if UNSPACED_END.search(line[-4:]):
        return width >= MIN_UNSPACED_WIDTH and measure(line) + 1 > 0.9 * width
    word = below.split(None, 1)[0]
    # A line without a blank is no prose.
    return " " in line.lstrip() and measure(line) + 1 + min(len(word), LONG_WORD) > 0.9 * width


def split_sentences(text: str, layout: str, language: str = "en") -> list[str]:
    """Sentences of a text, white space (form feeds and the like, too) made single blanks, empty ones left out.

    Args:
      layout: one of LAYOUTS, or "auto" to have it decided on this very text; "split" is "auto" without "sentences".
      language: two letters, for the rules of abbreviations in `sentencex`; unknown ones fall back to English.
    """
    layout = resolve_layout(layout, text, language)
    lines = [" ".join(line.split()) for line in text.split("\n")]
    if layout == SENTENCES:
        return [line for line in lines if line]
    paragraphs: Iterable[str] = lines
    if layout == WRAPPED:
        paragraphs = (_paragraph(list(block)) for has_text, block in itertools.groupby(lines, bool) if has_text)
    sentences = (s.strip() for paragraph in paragraphs if paragraph for s in sentencex.segment(language, paragraph))
    return [sentence for sentence in sentences if sentence]


def _paragraph(block: Sequence[str]) -> str:
    """Its lines in one, with a blank between two of them unless the script has none."""
    joined = [block[0]]
    for above, line in itertools.pairwise(block):
        joined += ("" if UNSPACED_END.search(above[-4:]) and UNSPACED_START.match(line) else " ", line)
    return "".join(joined)


def cut_sections(pieces: Iterable[str], layout: str) -> Iterator[str]:
    """Texts of about SECTION_CHARS characters that put together are the lines, so that no document must fit in memory.

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
