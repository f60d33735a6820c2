import json

import pytest

from bert.errors import InputError
from bert.text.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n".join([*SPECIAL, "a", "b", "a"]), "line 8: 'a' stands in line 6 already"),
        ("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]), r"vocab.txt: \[MASK\] missing among 5 entries"),
        ("\n".join([*SPECIAL, "a", "", "b"]), "line 7: empty"),
        ("", r"\[PAD\], \[UNK\], \[CLS\], \[SEP\], \[MASK\] missing among 0 entries"),
        (b"[PAD]\n\xff", "not UTF-8 at byte 6"),
    ],
)
def test_vocabulary_files_are_refused_by_line(tmp_path, content, message):
    """A duplicate, a missing special token, an empty line or other bytes than UTF-8: file, line and rule are named."""
    path = tmp_path / "vocab.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message) as caught:
        Tokenizer.from_vocab(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_released_vocabularies_are_accepted(shared):
    """Every vocabulary of Google's releases is read whole, the Chinese one with an entry that is an odd blank, too."""
    found = sorted((shared / "data" / "bert_vocab_config").glob("*/vocab.txt"))
    assert len(found) == 3
    for path in found:
        assert Tokenizer.from_vocab(path).vocab_size == path.read_bytes().count(b"\n")


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    """A file saved on Windows gives the same entries."""
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*SPECIAL, "hello", ""]).encode())
    assert Tokenizer.from_vocab(path).vocab == (*SPECIAL, "hello")


def test_a_folder_without_vocabulary_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"neither tokenizer.json nor vocab.txt"):
        Tokenizer.load(tmp_path)
    with pytest.raises(InputError, match="cannot be read as a vocabulary"):
        Tokenizer.from_vocab(tmp_path / "none.txt")


def test_other_kinds_of_tokenizers_are_refused(tmp_path):
    """A tokenizer.json of another model, with gaps in its ids, or broken, is told as such."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": "BPE", "vocab": {}}, "normalizer": None}))
    with pytest.raises(InputError, match="not a BERT tokenizer"):
        Tokenizer.load(tmp_path)
    path.write_text("{")
    with pytest.raises(InputError, match="cannot be read as JSON"):
        Tokenizer.load(tmp_path)
    vocab = {entry: 2 * index for index, entry in enumerate(SPECIAL)}
    path.write_text(
        json.dumps({"model": {"type": "WordPiece", "vocab": vocab}, "normalizer": {"type": "BertNormalizer"}})
    )
    with pytest.raises(InputError, match="has id 2 where 1 comes next"):
        Tokenizer.load(tmp_path)


def test_tokenizer_config_decides_letter_case(tmp_path):
    """Where the two files differ, tokenizer_config.json counts, as in transformers."""
    Tokenizer.from_vocab([*SPECIAL, "hello", "Hello"], lower_case=False).save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"do_lower_case": True, "strip_accents": None}))
    assert Tokenizer.load(tmp_path).encode("Hello").ids == [5]
