import pytest

from bert.errors import InputError
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.wordpiece import WordPiece

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n".join([*SPECIAL, "a", "b", "a"]), "line 8: 'a' stands in line 6 already"),
        ("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]), r"vocab.txt: '\[MASK\]' missing"),
        ("\n".join([*SPECIAL, "a", "", "b"]), "line 7: empty"),
        ("", r"'\[PAD\]', '\[UNK\]', '\[CLS\]', '\[SEP\]', '\[MASK\]' missing"),
        (b"[PAD]\n\xff", "not UTF-8 at byte 6"),
    ],
)
def test_vocabulary_files_are_refused_by_line(tmp_path, content, message):
    """A duplicate, a missing special token, an empty line or other bytes than UTF-8: file, line and rule are named."""
    path = tmp_path / "vocab.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message) as caught:
        WordPiece.from_vocab(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_released_vocabularies_are_accepted(shared):
    """Every vocabulary of Google's releases is read whole, the Chinese one with an entry that is an odd blank, too."""
    found = sorted((shared / "data" / "bert_vocab_config").glob("*/vocab.txt"))
    assert len(found) == 3
    for path in found:
        assert WordPiece.from_vocab(path).vocab_size == path.read_bytes().count(b"\n")


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    """A file saved on Windows gives the same entries."""
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*SPECIAL, "hello", ""]).encode())
    assert WordPiece.from_vocab(path).vocab == (*SPECIAL, "hello")


def test_a_folder_without_vocabulary_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"tokenizer.json nor vocab.txt"):
        load_tokenizer(tmp_path)
    with pytest.raises(InputError, match=r"none.txt: no such file"):
        WordPiece.from_vocab(tmp_path / "none.txt")
