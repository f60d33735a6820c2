"""What the files of a tokenizer's folder may hold; words that they add are compared in transformers_test.py."""

import json

import pytest

from bert.errors import InputError
from bert.text.tokenizer import Tokenizer
from tests.bert.text.builders import SPECIAL

ENTRIES = [*SPECIAL, "a", "##a"]


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("tokenizer_config", {"do_lower_case": "false"}, "do_lower_case is 'false'; it must be true or false"),
        ("tokenizer_config", {"strip_accents": 1}, "strip_accents is 1; it must be true or false"),
        ("tokenizer_config", {"model_max_length": -5}, "model_max_length is -5; it must be a number of at least 1"),
        ("tokenizer_config", {"model_max_length": "64"}, "model_max_length is '64'; it must be a number of at least 1"),
        ("tokenizer_config", {"model_max_length": float("nan")}, "NaN"),
        ("tokenizer_config", {"mask_token": 7}, "7 is no added token"),
        ("tokenizer_config", {"additional_special_tokens": "[E1]"}, "is '[E1]'; it must be a list"),
        ("tokenizer_config", {"added_tokens_decoder": ["x"]}, "added_tokens_decoder is ['x']; it must be an object"),
        ("tokenizer_config", {"added_tokens_decoder": {"x": "[E1]"}}, "'[E1]' has the id 'x'; it must be a number"),
        ("tokenizer_config", {"added_tokens_decoder": {"90": "[E1]"}}, "'[E1]' has id 90 where 7 comes next"),
        ("tokenizer", {"added_tokens": [{"id": 26, "content": None}]}, "is no added token"),
        ("tokenizer", {"added_tokens": 7}, "added_tokens is 7; it must be a list"),
        ("tokenizer", {"model": ["WordPiece"]}, "model is ['WordPiece']; it must be an object"),
        ("tokenizer", {"normalizer": {"type": "BertNormalizer", "lowercase": "no"}}, "lowercase is 'no'; it must be"),
    ],
)
def test_values_that_mean_nothing_are_refused(tmp_path, file, values, message):
    """One line with the file, the name, the value and the rule."""
    Tokenizer.from_vocab(ENTRIES).save(tmp_path)
    path = tmp_path / f"{file}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(InputError) as caught:
        Tokenizer.load(tmp_path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value) or "comes next" in message
    assert "\n" not in str(caught.value)


def test_no_limit_and_no_word_of_a_limit(tmp_path):
    """transformers writes 1e30 for an endless input; null is as good as nothing."""
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES))
    for value, read in ((1e30, 1 << 30), (None, 512), (64, 64)):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": value}))
        assert Tokenizer.load(tmp_path).model_max_length == read


def test_a_folder_of_googles_has_googles_longest_word(tmp_path):
    """bert_config.json beside vocab.txt: words up to 200 characters; with a config.json the folder is another's."""
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES))
    assert Tokenizer.load(tmp_path).encode("a" * 101).ids == [1]
    (tmp_path / "bert_config.json").write_text("{}")
    assert Tokenizer.load(tmp_path).encode("a" * 200).ids == [5] + [6] * 199
    assert Tokenizer.load(tmp_path).encode("a" * 201).ids == [1]
    (tmp_path / "config.json").write_text("{}")
    assert Tokenizer.load(tmp_path).encode("a" * 101).ids == [1]


def test_other_kinds_of_tokenizers_are_refused(tmp_path):
    """A tokenizer.json of another model, with gaps in its ids, or broken, is told as such."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": "BPE", "vocab": {}}, "normalizer": None}))
    with pytest.raises(InputError, match="not a BERT tokenizer"):
        Tokenizer.load(tmp_path)
    path.write_text("{")
    with pytest.raises(InputError, match=r"tokenizer\.json:1: not JSON"):
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
