"""JSON objects in files: what Python's `json` or the operating system would let pass is one line."""

import json
import os

import pytest

from bert.errors import InputError
from bert.json_files import DEPTH, object_once, read_object, read_text


def nested(levels):
    return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"\xff\xfe{\x00}\x00", ":1: not UTF-8"),
        (b'{\n"a": "\xe9"}', ":2: not UTF-8"),
        (b'{\n"a": 1\n"b": 2}', ":3: not JSON"),
        (b"", "not JSON"),
        (b"[1]", "list"),
        (b"null", "NoneType"),
        (b'{"a": {"b": 1, "c": 2, "b": 3}}', "'b' stands twice"),
        (b'{"a": [NaN]}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "1e999"),
        (b'{"a": %d}' % 10**400, "larger than any float"),
        (b'{"a": ' + b"7" * 5000 + b"}", "4300 digits"),
        (nested(DEPTH + 1), "nested"),
        (b'{"a":' + b"[" * 100_000, "nested"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\uDFFF": 1}', "surrogate"),
        (b'{"a": "' + b"x" * 5000 + b'"}', "4,000 bytes"),
    ],
)
def test_what_is_no_object_of_plain_values_is_refused_in_a_line(tmp_path, content, word):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_object(path, limit=4000 if b"x" * 5000 in content else 1 << 20)
    assert str(caught.value).startswith(str(path))
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 200


@pytest.mark.parametrize(
    "value", [{}, {"a": [1, 2**70, 1.5, None, True, "x"]}, {"\U0001f600": "\u00e9\x1b"}, json.loads(nested(DEPTH))]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_other_objects_are_read_as_they_are(tmp_path, value, encoding):
    """With and without a byte order mark, with escapes for surrogate pairs and without."""
    path = tmp_path / "config.json"
    for ascii_only in (True, False):
        path.write_text(json.dumps(value, ensure_ascii=ascii_only), encoding=encoding)
        assert read_object(path) == value


def test_infinity_is_read_where_the_caller_asks_for_it(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"clip_norm": Infinity}')
    assert read_object(path, finite=False) == {"clip_norm": float("inf")}


@pytest.mark.parametrize("read", [read_object, read_text])
def test_only_regular_files_are_opened(tmp_path, read):
    """A pipe without a writer would be waited for; a missing file is the caller's to explain."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "loop"):
        with pytest.raises(InputError, match=path.name):
            read(path)
    with pytest.raises(InputError, match="/dev/zero"):
        read(type(tmp_path)("/dev/zero"))
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "missing")
    (tmp_path / "real").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert read(tmp_path / "link") in ({}, "{}")


def test_equal_names_by_the_thousand_take_no_time():
    pairs = [(str(i), 0) for i in range(100_000)]
    with pytest.raises(ValueError, match="'99999' stands twice"):
        object_once([*pairs, pairs[-1]])
