"""Finds what BERT's lower-casing, which also strips accents, would remove from a text."""

import collections
import re
import unicodedata
from collections.abc import Iterable

SAMPLE_CHARS = 2_000_000  # characters of text to examine; more would not change the answer
MIN_COUNT = 20  # times that each word of a pair is there
MIN_RATIO = 0.1  # of the rarer word to the other
MIN_SHARE = 0.005  # of the words; 21 English books have 0.0005 at most, source code 0.006, SMILES 0.009 to 0.065
MIN_PAIRS = 3
MANY_MARKS = 0.01  # of the characters; Latin, Greek and Cyrillic texts have none
# Words where no sentence and no quotation begins: behind a blank that follows a word or a comma, or fast to a sign.
_INNER_WORD = re.compile(r"(?:(?<=[\w,;] )|(?<=[^\s\w.!?:\"'`*\u00ab\u00bb\u2010-\u201f]))[^\W_]+")


def merged_by_lower_case(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Frequent pairs of words that lower-casing makes equal, the most frequent first; empty where they are few.

    Not pairs of a word and the same with a capital, which titles and names have in any prose.
    """
    counts: collections.Counter[str] = collections.Counter()
    for text in texts:
        counts.update(_INNER_WORD.findall(text))
    forms: dict[str, list[str]] = collections.defaultdict(list)
    for word, _ in counts.most_common():
        forms[word.lower()].append(word)
    pairs = []
    for first, second in ((words[0], words[1]) for words in forms.values() if len(words) > 1):
        capital = len(first) > 1 and first[1:] == second[1:]
        if not capital and counts[second] >= max(MIN_COUNT, MIN_RATIO * counts[first]):
            pairs.append((counts[second], first, second))
    if len(pairs) < MIN_PAIRS or sum(count for count, _, _ in pairs) < MIN_SHARE * counts.total():
        return []
    return [(first, second) for _, first, second in sorted(pairs, reverse=True)]


def lost_marks(texts: Iterable[str]) -> float:
    """Share of the characters without white space that are marks of other scripts than Latin, Greek and Cyrillic.

    The removal of accents takes them, too: vowel signs of Devanagari, tone marks of Thai, voicing marks of kana.
    """
    characters = marks = 0
    for text in texts:
        characters += sum(map(len, text.split()))
        if not text.isascii():
            nonspacing = (c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) == "Mn")
            marks += sum(not "\u0300" <= c <= "\u036f" for c in nonspacing)
    return marks / max(characters, 1)
