"""Words of texts: the cut of BERT's tokenizers, whatever the script, and none of it is lost."""

import gzip
import tarfile

import pytest

from bert.tokenizer.wordpiece import WordPiece
from bert.words import places_of_words


def cut(text):
    return [text[start:end] for start, end in places_of_words(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Anna's cat, at 5€!", ["Anna", "'", "s", "cat", ",", "at", "5€", "!"]),
        ("a\r\n\tb\u00a0c\u2028d\u3000e", ["a", "b", "c", "d", "e"]),
        ("東京は近い", ["東", "京", "は", "近", "い"]),
        ("葛\U000e0100飾, cafe\u0301!\u0301", ["葛\U000e0100", "飾", ",", "cafe\u0301", "!\u0301"]),
        ("👩🏽\u200d🚒 ❤\ufe0f #\ufe0f\u20e3", ["👩🏽\u200d🚒", "❤\ufe0f", "#\ufe0f\u20e3"]),
        ("\u200bAn\u00adna\u200b \ufeff\ufffd \u0301b", ["An\u00adna", "\u0301b"]),
        ("\u0085 \u200d\n", []),
        ("", []),
    ],
)
def test_words(text, words):
    assert cut(text) == words


def words_of_tokenizer(text, tokenizer):
    """As the tokenizer cuts it, each word from its first piece to its last."""
    encoding = tokenizer.encode(text)
    places = {}
    for word, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
        places[word] = (places.get(word, (start, end))[0], end)
    return list(places.values())


def test_real_texts_are_cut_as_by_the_tokenizer_in_any_script(shared):
    """A declaration in languages of all scripts, and Chinese articles; no accent is removed."""
    vocabulary = (shared / "data" / "bert_vocab_config" / "bert-base-cased" / "vocab.txt").read_text().splitlines()
    tokenizer = WordPiece.from_vocab(vocabulary, lower_case=False)
    texts = [gzip.decompress((shared / "data" / "corpus_wiki_zh" / "cn_wiki_sample.txt.gz").read_bytes()).decode()]
    with tarfile.open(shared / "data" / "corpus_udhr2" / "udhr2.tar.gz") as archive:
        for member in archive.getmembers():
            if member.isfile():
                texts.append(archive.extractfile(member).read().decode("utf-8", "ignore"))
    assert len(texts) > 20
    for text in texts:
        text = text[:10_000]
        assert places_of_words(text) == words_of_tokenizer(text, tokenizer)
