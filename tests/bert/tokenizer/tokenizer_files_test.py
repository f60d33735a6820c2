"""What the files of a tokenizer's folder may hold; words that they add are compared in transformers_test.py."""

import json
import logging
import os
import random
import re
import time

import pytest

from bert.errors import InputError
from bert.tokenizer.added_words import AddedWord
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import SPECIAL
from tests.bert.mutations import bytes_changed, json_changed

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
    ],
)
def test_values_that_mean_nothing_are_refused(tmp_path, file, values, message):
    """One line with the file, the name, the value and the rule."""
    WordPiece.from_vocab(ENTRIES).save(tmp_path)
    path = tmp_path / f"{file}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(InputError) as caught:
        load_tokenizer(tmp_path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value) or "comes next" in message
    assert "\n" not in str(caught.value)


def test_no_limit_and_no_word_of_a_limit(tmp_path):
    """transformers writes 1e30 for an endless input; null is as good as nothing."""
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES))
    for value, read in ((1e30, 1 << 30), (None, 512), (64, 64)):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": value}))
        assert load_tokenizer(tmp_path).model_max_length == read


def test_a_folder_of_googles_has_googles_longest_word(tmp_path):
    """bert_config.json beside vocab.txt: words up to 200 characters; with a config.json the folder is another's."""
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES))
    assert load_tokenizer(tmp_path).encode("a" * 101).ids == [1]
    (tmp_path / "bert_config.json").write_text("{}")
    assert load_tokenizer(tmp_path).encode("a" * 200).ids == [5] + [6] * 199
    assert load_tokenizer(tmp_path).encode("a" * 201).ids == [1]
    (tmp_path / "config.json").write_text("{}")
    assert load_tokenizer(tmp_path).encode("a" * 101).ids == [1]


def test_tokenizer_config_decides_letter_case(tmp_path):
    """Where the two files differ, tokenizer_config.json counts, as in transformers."""
    WordPiece.from_vocab([*SPECIAL, "hello", "Hello"], lower_case=False).save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"do_lower_case": True, "strip_accents": None}))
    assert load_tokenizer(tmp_path).encode("Hello").ids == [5]


FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt")


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_read_or_refused_in_a_line(tmp_path, caplog, name, count):
    """No other exception (Rust's panics are none of Python's), no line end or escape code in what is said."""
    rng = random.Random(f"{name} {count}")
    WordPiece.from_vocab([*ENTRIES, "b"], added=[AddedWord("[E1]", special=True), AddedWord("b")]).save(tmp_path)
    mask = {"content": "[MASK]", "lstrip": True}
    names = {"mask_token": mask, "additional_special_tokens": ["[E1]"], "unk_token": "[UNK]"}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(names))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"b": 7, "[E1]": 8}))
    if name in FILES[2:]:
        (tmp_path / "tokenizer.json").unlink()
    if name == "vocab.txt":
        (tmp_path / "tokenizer_config.json").unlink()
    content = (tmp_path / name).read_bytes()
    refused = 0
    for _ in range(count):
        caplog.clear()
        is_text = not content.startswith(b"{") or rng.random() < 0.3
        mutated = (
            bytes_changed(content, rng) if is_text else json.dumps(json_changed(json.loads(content), rng)).encode()
        )
        (tmp_path / name).write_bytes(mutated)
        try:
            found = load_tokenizer(tmp_path)
            found.encode("a [MASK] b [E1]", special_in_text=True)
            said = found.summary()
        except InputError as error:
            said = str(error)
            refused += 1
        lines = [said, *(record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)]
        assert all(line.isprintable() and len(line) < 1000 for line in lines), lines
    assert count / 8 < refused < count


def test_a_pipe_is_no_file_of_a_tokenizer(tmp_path):
    """Nothing waits for a writer that never comes."""
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES))
    for name in FILES:
        (tmp_path / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / name)
        with pytest.raises(InputError, match=rf"{re.escape(name)}: .*pipe"):
            load_tokenizer(tmp_path)
        (tmp_path / name).unlink()


def test_ten_thousand_added_words_take_no_time(tmp_path):
    """Seconds, not the quarter of an hour that one call of the library for each word takes."""
    words = [AddedWord(f"[w{i}]", special=i % 2 == 0, lstrip=i % 3 == 0) for i in range(10_000)]
    WordPiece.from_vocab(ENTRIES, added=words).save(tmp_path)
    begin = time.process_time()
    found = load_tokenizer(tmp_path)
    assert found.encode("a[w77]").ids == [5, len(ENTRIES) + 77]
    assert time.process_time() - begin < 20
