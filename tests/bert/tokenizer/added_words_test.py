import dataclasses
import re

import pytest
import tokenizers

from bert.errors import InputError
from bert.tokenizer.added_words import (
    AddedWord,
    protected_word,
    read_added_word,
    special_word,
    split_protected,
    words_of,
)
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import SPECIAL


def test_what_a_file_leaves_open():
    """A plain text is special or not as the place says where it stands; special words are found as they are written."""
    assert read_added_word("<e1>", "f", special=True) == AddedWord("<e1>", special=True, normalized=False)
    assert read_added_word("<e1>", "f") == AddedWord("<e1>", special=False, normalized=True)
    assert read_added_word({"content": "x", "special": True, "id": 7}, "f") == special_word("x")
    given = {"__type": "AddedToken", "content": "x", "lstrip": True, "normalized": True, "special": True}
    assert read_added_word(given, "f") == AddedWord("x", special=True, normalized=True, lstrip=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "file: 7 is no added token"),
        ("", "file: '' is no added token"),
        ({"lstrip": True}, "file: {'lstrip': True} is no added token"),
        ({"content": "x", "lstrip": "no"}, "file: lstrip of the added token 'x' is 'no'; it must be true or false"),
    ],
)
def test_what_is_no_word_is_refused(value, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_added_word(value, "file")


def test_words_of_a_setting_and_of_a_file(tmp_path):
    """With the rules that `tokenizers.AddedToken` has by default; a file may have commas and blanks in its tokens."""
    assert words_of("") == ()
    assert words_of("[E1], <URL>,[E1]") == (AddedWord("[E1]"), AddedWord("<URL>"))
    default = tokenizers.AddedToken("x")
    assert AddedWord("x") == AddedWord(
        **{rule.name: getattr(default, rule.name) for rule in dataclasses.fields(AddedWord)}
    )
    (tmp_path / "tokens.txt").write_text("new york\r\n\na,b\n")
    assert words_of(f"@{tmp_path}/tokens.txt") == (AddedWord("new york"), AddedWord("a,b"))
    for setting, said in ((f"@{tmp_path}/none.txt", "none.txt, which is no file"), (",", "holds no token")):
        with pytest.raises(InputError, match=said):
            words_of(setting)


def test_only_unusual_rules_are_kept_apart():
    """Special tokens as they always are leave no trace, and one that a file does not call special is special."""
    words = [
        special_word("[CLS]"),
        AddedWord("[MASK]", lstrip=True),
        protected_word("ab"),
        AddedWord("ab cd", rstrip=True),
    ]
    protected, other = split_protected(words, ["[CLS]", "[MASK]"])
    assert protected == ("ab",)
    assert other == (AddedWord("[MASK]", special=True, lstrip=True), AddedWord("ab cd", rstrip=True))


def test_an_added_word_is_no_piece_of_other_words():
    tokenizer = WordPiece.from_vocab([*SPECIAL, "fu", "##z"], lower_case=True).add_words(words_of("##zz"))
    assert [tokenizer.vocab[i] for i in tokenizer.encode("fuzz ##zz").ids] == ["fu", "##z", "##z", "##zz"]
