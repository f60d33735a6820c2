import json
import random
import threading

import numpy as np
import pytest

from bert.corpus.layout import SENTENCES
from bert.store import tokenize_sections as module
from bert.store.tokenize_sections import LostText, start_tokenizing, tokenize_sections
from bert.tokenizer.added_words import AddedWord, words_of
from bert.tokenizer.wordpiece import WordPiece


def assert_same_as_whole_sentences(tokenizer, texts, special_in_text=False):
    start_tokenizing(tokenizer, "en", special_in_text, False)
    sentences = [" ".join(text.split()) for text in texts]
    for _ in range(2):  # the second time, every word is known
        pieces = tokenize_sections([("\n".join(sentences), SENTENCES)])
        ids = tokenizer.encode_ids([sentence for sentence in sentences if sentence], special_in_text=special_in_text)
        assert pieces.tokens.tolist() == [token for sentence in ids for token in sentence]
        assert pieces.sentence_lengths.tolist() == [len(sentence) for sentence in ids if sentence]


@pytest.mark.parametrize("kind", ["uncased", "cased"])
@pytest.mark.parametrize("special_in_text", [False, True])
def test_ids_word_by_word_are_those_of_whole_sentences(shared, kind, special_in_text):
    """Remembered words give the same ids as the tokenizer on the whole text, for texts of all scripts and oddities."""
    golden = json.loads((shared / "golden" / "tokenization.json").read_text(encoding="utf-8"))
    tokenizer = WordPiece.from_vocab(shared / "golden" / "vocab" / f"bert-base-{kind}-vocab.txt")
    assert_same_as_whole_sentences(tokenizer, [row["text"] for row in golden["rows"]], special_in_text)


def test_random_texts_too(entries):
    """Combining marks at the beginning of words, ideographs, controls and punctuation, in any order."""
    rng = random.Random(1)
    pools = [range(0x20, 0x7F), range(0xC0, 0x250), range(0x300, 0x370), range(0x4E00, 0x4E20), range(0xAC00, 0xAC20)]
    pools += [range(0x2000, 0x2070), range(0, 0x20), range(0x391, 0x3D0), [0x20], [0x20]]
    texts = ["".join(chr(rng.choice(rng.choice(pools))) for _ in range(rng.randrange(60))) for _ in range(2000)]
    for lower_case in (True, False):
        tokenizer = WordPiece.from_vocab([*entries, *map(chr, range(0x300, 0x320))], lower_case=lower_case)
        assert_same_as_whole_sentences(tokenizer, texts)


def test_protected_words_with_a_blank_are_kept_whole(entries):
    tokenizer = WordPiece.from_vocab(entries, lower_case=True).add_words(words_of("new york,[E1]"))
    assert_same_as_whole_sentences(tokenizer, ["hello New York world", "new [E1] york"])


def test_added_words_with_rules_of_their_own(entries):
    """Words that take blanks along, stand alone, or hold a blank: remembered parts give the ids of the whole text."""
    rng = random.Random(2)
    pieces = ["<a>", "<A>", "<b>", "hello", "HELLO", " ", " ", "_", "x", "York", "new york", "[MASK]"]
    texts = ["".join(rng.choices(pieces, k=8)) for _ in range(300)]
    alone = AddedWord("<a>", special=True, normalized=False, lstrip=True, rstrip=True)
    for more in ([AddedWord("hello", single_word=True)], [AddedWord("New York", normalized=False)], [AddedWord("x ")]):
        tokenizer = WordPiece.from_vocab(entries, lower_case=True, added=[alone, AddedWord("<b>"), *more])
        for special_in_text in (False, True):
            assert_same_as_whole_sentences(tokenizer, texts, special_in_text)


def test_memory_of_words_is_bounded(entries, monkeypatch):
    """Forgetting words changes no id; long ones are not remembered at all."""
    monkeypatch.setattr(module, "MAX_KNOWN", 5)
    tokenizer = WordPiece.from_vocab(entries, lower_case=True)
    start_tokenizing(tokenizer, "en", False, False)
    text = "hello world note book one two line mask un cafe " + "a" * 40
    for _ in range(3):
        assert tokenize_sections([(text, SENTENCES)]).tokens.tolist() == tokenizer.encode(text).ids
        assert len(module._worker.setup[1]._known) <= 5
    start_tokenizing(tokenizer, "en", False, False)
    tokenize_sections([("hello " + "a" * 40, SENTENCES)])
    assert set(module._worker.setup[1]._known) == {"hello"}


def test_threads_of_one_process_have_tokenizers_of_their_own(entries):
    """Two jobs with different vocabularies: each thread starts, waits for the other to start, and tokenizes."""
    tokenizers = [WordPiece.from_vocab(words, lower_case=True) for words in (entries, entries[:5] + entries[:4:-1])]
    both_started, found = threading.Barrier(2, timeout=10), {}

    def job(number):
        start_tokenizing(tokenizers[number], "en", False, False)
        both_started.wait()
        found[number] = tokenize_sections([("hello world", SENTENCES)]).tokens.tolist()

    threads = [threading.Thread(target=job, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: tokenizers[number].encode("hello world").ids for number in (0, 1)}
    assert found[0] != found[1]


def test_sections_keep_their_own_sentences(entries):
    """Counts and tokens of each section are its own; sentences without a token and empty sections are left out."""
    tokenizer = WordPiece.from_vocab(entries, lower_case=True)
    start_tokenizing(tokenizer, "en", False, True)
    texts = ["hello world\n\u200b\none", "", "\u200b", "notebook unaffable, hello"]
    pieces = tokenize_sections([(text, SENTENCES) for text in texts])
    found = [(p.tokens.tolist(), p.sentence_lengths.tolist(), p.continues.tolist()) for p in pieces.sections()]
    assert found == [
        ([5, 6, 20], [2, 1], [False, False, False]),
        ([], [], []),
        ([], [], []),
        ([25, 14, 15, 16, 9, 5], [6], [False, False, True, True, True, False]),
    ]
    assert [piece.lost.characters for piece in pieces.sections()] == [14, 0, 1, 23]
    assert not pieces.lost[:, 1:].any()
    assert pieces.tokens.dtype == np.uint16


def test_lost_characters_are_counted_by_cause(entries):
    """Unknown tokens stand for words above the limit (in characters without accents), or without pieces."""
    tokenizer = WordPiece.from_vocab(entries, lower_case=True, max_word_chars=7)
    start_tokenizing(tokenizer, "en", False, False)
    text = "hello xyz, worldly hellohello\none \u00e9\u00e9 hello world"
    pieces = tokenize_sections([(text, SENTENCES), ("", SENTENCES), (text[:10], SENTENCES)])
    lost, none, last = (piece.lost for piece in pieces.sections())
    assert (none, last) == (LostText(), LostText(characters=9, tokens=1, in_words=3, longest_word=3))
    assert lost == LostText(characters=41, tokens=4, in_words=3 + 7 + 10 + 2, in_long_words=10, longest_word=10)
    tokenizer = WordPiece.from_vocab(entries, lower_case=True, max_word_chars=2)
    start_tokenizing(tokenizer, "en", False, False)
    (lost,) = (
        piece.lost for piece in tokenize_sections([("\u00e9\u00e9 \uac01 [UNK]", SENTENCES)]).sections()
    )  # a Hangul syllable of three letters
    assert (lost.in_words, lost.in_long_words, lost.longest_word) == (2 + 1 + 3, 1 + 3, 3)
