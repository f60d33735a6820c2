"""Spans of characters to pieces and back: the same text, or a widening that is told, in every script."""

import random
import unicodedata

import pytest

from bert.tokenizer.alignment import Pieces
from bert.tokenizer.tokenizer import Tokenizer
from bert.tokenizer.wordpiece import WordPiece

# Letters that words are made of, and the marks that may follow a letter of the script.
SCRIPTS = {
    "latin": ("abcdefghijklmnopqrstuvwxyz", ""),
    "accented": ("áàâäãåçéèêëíîïñóôöõúûüýžščřğışß", "\u0301\u0308\u0323\u0327"),
    "greek": ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώ", "\u0301"),
    "cyrillic": ("абвгдежзийклмнопрстуфхцчшщъыьэюяё", "\u0301"),
    "armenian": ("աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ", ""),
    "georgian": ("აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ", ""),
    "hebrew": ("אבגדהוזחטיכלמנסעפצקרשת", "\u05b0\u05b4\u05b7\u05bc"),
    "arabic": ("ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "\u064b\u064e\u0650\u0651\u200c"),
    "devanagari": ("अआइईउकखगघचछजझटठडढतथदधनपफबभमयरलवशषसह", "\u093e\u093f\u0940\u0941\u0947\u094d\u0902"),
    "bengali": ("অআইউকখগঘচছজটঠডঢতথদধনপফবভমযরলশষসহ", "\u09be\u09bf\u09c0\u09c7\u09cd\u200d"),
    "tamil": ("அஆஇஈஉகஙசஞடணதநபமயரலவழளறன", "\u0bbe\u0bbf\u0bc0\u0bc6\u0bcd"),
    "thai": ("กขคงจฉชซญดตถทธนบปผฝพฟภมยรลวศษสหอฮ", "\u0e31\u0e34\u0e35\u0e48\u0e49"),
    "ethiopic": ("ሀለሐመሠረሰሸቀበተቸኀነኘአከኸወዐዘዠየደጀገጠጨጰጸፀፈፐ", ""),
    "cjk": ("的一是不了在人有我他这个们中来上大为和国地到以说时要就出会ひらがなカタカナ", "\u3099"),
    "hangul": ("가나다라마바사아자차카타파하한국어를입니다", ""),
    "emoji": ("🤗❤👩🏳😀🚀🎉☂✈", "\ufe0f\u200d\U0001f3fd"),
}
BETWEEN = (" ", " ", " ", "  ", "\r\n", "\n\n\n", "\t", "\u00a0", "\u3000", ", ", "-", ".", "\u200b", "\ufffd ", "")


def word(rng: random.Random, script: str) -> str:
    letters, marks = SCRIPTS[script]
    text = "".join(
        rng.choice(letters) + (rng.choice(marks) if marks and rng.random() < 0.4 else "")
        for _ in range(rng.randint(1, 8))
    )
    text = text.title() if rng.random() < 0.2 else text
    return unicodedata.normalize("NFD", text) if rng.random() < 0.2 else text


def passage(rng: random.Random) -> str:
    """Words of one script, sometimes another in between, with blanks, line ends and marks between them."""
    script = rng.choice(list(SCRIPTS))
    parts = []
    for _ in range(rng.randint(3, 12)):
        parts.append(word(rng, script if rng.random() < 0.8 else rng.choice(list(SCRIPTS))))
        parts.append(rng.choice(BETWEEN))
    return "".join(parts)


@pytest.fixture(scope="module", params=["uncased", "cased"])
def tokenizer(request) -> Tokenizer:
    """A small vocabulary of such words: some are whole, most are cut, some characters are unknown."""
    rng = random.Random(0)
    words = [word(rng, script) for script in SCRIPTS for _ in range(60)]
    return WordPiece.train([" ".join(words)] * 2, vocab_size=1500, lower_case=request.param == "uncased")


def has_no_look(character: str) -> bool:
    """Blanks, controls and joiners, which a span may lose at its ends."""
    return character.isspace() or unicodedata.category(character) in ("Cc", "Cf") or character == "\ufffd"


def trimmed(text: str) -> str:
    first = next((i for i, c in enumerate(text) if not has_no_look(c)), len(text))
    last = next((i for i in range(len(text), first, -1) if not has_no_look(text[i - 1])), first)
    return text[first:last]


def test_spans_come_back_or_their_widening_is_told(tokenizer):
    """5,000 random spans: the same text but for blanks at its ends, or wider to the borders of the pieces that hold its
    first and last character, by exactly what is told."""
    rng = random.Random(1)
    texts = [passage(rng) for _ in range(500)]
    same, wider, nothing = 0, 0, 0
    for text, encoding in zip(texts, tokenizer.encode_batch(texts), strict=True):
        pieces = Pieces(encoding.offsets, text)
        for _ in range(10):
            start, end = sorted(rng.sample(range(len(text) + 1), 2))
            found = pieces.of_span(start, end)
            before, behind = pieces.widening(start, end)
            if found is None:
                assert trimmed(text[start:end]) == ""
                assert (before, behind) == (0, 0)
                nothing += 1
                continue
            first, stop = found
            a, b = pieces.span_of(first, stop)
            assert trimmed(text[a + before : b - behind]) == trimmed(text[start:end]), (text, start, end)
            if before:
                assert a + before == start < pieces.ends_K[first]
            if behind:
                assert b - behind == end > pieces.starts_K[stop - 1]
            wider, same = wider + bool(before or behind), same + (before == behind == 0)
    assert same + wider + nothing == 5000
    assert min(same, wider, nothing) > 20, (same, wider, nothing)


def test_spans_of_whole_words_come_back_exactly(tokenizer):
    """What people mark: nothing is lost or gained, accents and vowel signs included, whatever stands around."""
    rng = random.Random(2)
    rows = []
    for _ in range(1000):
        script = rng.choice(list(SCRIPTS))
        words = [word(rng, script) for _ in range(5)]
        blanks = [rng.choice((" ", "\r\n", "\n\n\n", "  ", "\u3000")) for _ in range(5)]
        text = "".join(w + b for w, b in zip(words, blanks, strict=True))
        start = len(words[0]) + len(blanks[0])
        rows.append((text, start, start + len(words[1]) + len(blanks[1]) + len(words[2])))
    for (text, start, end), encoding in zip(rows, tokenizer.encode_batch([row[0] for row in rows]), strict=True):
        pieces = Pieces(encoding.offsets, text)
        a, b = pieces.span_of(*pieces.of_span(start, end))
        assert pieces.widening(start, end) == (0, 0)
        assert trimmed(text[a:b]) == trimmed(text[start:end]), (text, start, end)


def test_marks_stay_with_their_letters():
    """With accents removed, no piece holds U+0301 of a decomposed é, nor Hindi's last vowel sign, nor a flag's tags."""
    tokenizer = WordPiece.train(["cafe नमसत ❤ 🏴 is hello"] * 2, vocab_size=80)
    for answer in ("cafe\u0301", "नमस्ते", "❤\ufe0f", "🏴\U000e0067\U000e0062\U000e007f", "e\u200d\u0301"):
        text = f"is {answer} is"
        pieces = Pieces(tokenizer.encode(text).offsets, text)
        assert pieces.span_of(*pieces.of_span(3, 3 + len(answer))) == (3, 3 + len(answer))
        assert pieces.widening(3, 3 + len(answer)) == (0, 0)
    text = "cafe\u0301 is"
    pieces = Pieces(tokenizer.encode(text).offsets, text)
    assert pieces.widening(0, 4) == (0, 1), "a letter without its accent is half a letter"
    assert pieces.of_span(4, 5) == pieces.of_span(0, 4)
    text = "\u202bhello\u202c is \u0301 is"
    pieces = Pieces(tokenizer.encode(text).offsets, text)
    assert text[slice(*pieces.span_of(0, 1))] == "hello", "marks of direction and marks without a letter stay out"
    assert text[slice(*pieces.span_of(1, 2))] == "is"


def test_characters_and_pieces_by_hand():
    """ "new york!" as new, yo, ##rk, ! at (0, 3), (4, 6), (6, 8), (8, 9)."""
    pieces = Pieces([(0, 3), (4, 6), (6, 8), (8, 9)])
    assert len(pieces) == 4
    assert (pieces.of_span(0, 8), pieces.widening(0, 8)) == ((0, 3), (0, 0))
    assert (pieces.of_span(5, 8), pieces.widening(5, 8)) == ((1, 3), (1, 0))
    assert (pieces.of_span(4, 7), pieces.widening(4, 7)) == ((1, 3), (0, 1))
    assert (pieces.of_span(1, 2), pieces.widening(1, 2)) == ((0, 1), (1, 1))
    assert (pieces.of_span(3, 5), pieces.widening(3, 5)) == ((1, 2), (0, 1)), "the blank is lost, not gained"
    assert (pieces.of_span(3, 4), pieces.widening(3, 4)) == (None, (0, 0)), "a blank alone"
    assert pieces.span_of(0, 4) == (0, 9)
    assert Pieces([], "  ").of_span(0, 2) is None
    assert len(Pieces([], "नमस्ते")) == 0
    # One character that three pieces are made of, as of a decomposed Korean syllable.
    assert Pieces([(0, 1), (0, 1), (0, 1), (1, 2)]).of_span(0, 1) == (0, 3)


@pytest.mark.parametrize("blank", ["\n\n\n", "\r\n\r\n", " 🤗 café ", " cafe\u0301 "])
def test_offsets_are_code_points_of_the_original(blank):
    """As printed: original case and accents, the blanks between as they are."""
    tokenizer = WordPiece.train(["my name is wolfgang and i live in berlin cafe"] * 2, vocab_size=200)
    text = f"My name is Wolfgang {blank} and I live in Berlin"
    pieces = Pieces(tokenizer.encode(text).offsets, text)
    for answer in ("Wolfgang", "Berlin", "and I live", f"Wolfgang {blank} and"):
        start = text.index(answer)
        a, b = pieces.span_of(*pieces.of_span(start, start + len(answer)))
        assert text[a:b] == answer
