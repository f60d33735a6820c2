"""Lists and objects as text: what each language prints is what it says, and names stay names."""

import collections
import contextlib
import json

import numpy as np
import pytest

from bert.errors import InputError
from tasks.files.printed import is_half_open, is_interval, is_name_in_brackets, looks_printed, structure
from tests.tasks.one_line import message_of, says


@pytest.mark.parametrize(
    "value", [[1.0, 0.0], ["a", "b, c", "it's", 'a "b"'], [True, False, None], {"a": 1, "b": [0.5]}, [], {}, [[1], [2]]]
)
def test_what_json_and_python_print_is_read_back(value):
    assert structure(json.dumps(value), "here") == value
    assert structure(repr(value), "here") == value


@pytest.mark.parametrize("array", [np.array([1.0, 0.0, 0.5]), np.array([0, 1, 1]), np.array([True, False])])
def test_arrays_of_numpy(array):
    for text in (str(array), repr(array), repr(list(array)), str(array[:, None].T[0])):
        assert structure(text, "here") == array.tolist()
    assert structure(str(np.array(["a b", "c"])), "here") == ["a b", "c"]
    assert list(structure(repr({"a": np.float64(0.5)}), "here").values()) == [0.5]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("c(1, 0, 0)", [1, 0, 0]),
        ("c(TRUE, FALSE)", [True, False]),
        ('Any["a", "b"]', ["a", "b"]),
        ("Float64[1.0, 0.0]", [1.0, 0.0]),
        ("tensor([1., 0.], device='cuda:0')", [1.0, 0.0]),
        ("[sports, world news]", ["sports", "world news"]),
        ("[world news]", ["world news"]),
        ("[don't know, yes]", ["don't know", "yes"]),
        ("WrappedArray(0, 1)", [0, 1]),
        ("{0,1,0}", [0, 1, 0]),
        ("(0,1)", (0, 1)),
        ("('a',)", ("a",)),
        ("[01, 02]", ["01", "02"]),
        (repr(collections.Counter("aab")), {"a": 2, "b": 1}),
        (repr(collections.OrderedDict(a=1)), {"a": 1}),
        (repr(frozenset({"a"})), ["a"]),
        (json.dumps("[1, 0]"), [1, 0]),
        ("\u200b[1, 0]", [1, 0]),
        ("\uff3b1\uff0c 0\uff3d", [1, 0]),
    ],
)
def test_what_others_print(text, value):
    found = structure(text, "here")
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "text", ["yes", "", "(other)", "(1)", "f(x, y)", "(a, b)", "[a", "a]", ":)", "(:", "[x] and [y]", "a[0]", "(a:b)"]
)
def test_names_are_no_structures(text):
    assert structure(text, "here") is None


@pytest.mark.parametrize("text", ["(0, 5]", "[0, 5)", "(-inf, 0.5]", "[18;25)", "(3rd person)", "(2, b)"])
def test_intervals_and_words_in_brackets_are_no_structures(text):
    assert structure(text, "here") is None
    assert is_half_open(text) == (text[0] + text[-1] in ("(]", "[)"))
    assert is_interval("[0, 5]")
    assert not is_half_open("[0, 5]")


@pytest.mark.parametrize(
    "text",
    [
        *("Seq(1, 0)", "vec![0, 1]", "[]int{0, 1}", "new[] { 1, 0 }", "Row(a=0.5, b=0.5)", "%{a: 0.5, b: 0.5}"),
        *(
            "#{:a :b}",
            "<1, 0, 1>",
            "\u30101, 0\u3011",
            "'[1, 0]'",
            "[1, 0];",
            'x = ["a", "b"]',
            "tf.Tensor([1. 0.], x)",
        ),
        *('<|"a" -> 0.5, "b" -> 0.5|>', "0    1\ndtype: int64", "<l><a>1</a></l>", "SparseVector(3, {0: 1.0, 2: 1.0})"),
    ],
)
def test_lists_of_other_languages_are_known_from_names(text):
    assert structure(text, "here") is None
    assert looks_printed(text)


def test_names_with_brackets_do_not_look_printed():
    names = [
        "f(x, y)",
        "Smith (2001, 2002)",
        "a (b)",
        "C++",
        "x < 1, y > 2",
        "Rev 3:16",
        "[x] and [y]",
        "(1, 2)",
        "a[0]",
    ]
    assert not any(map(looks_printed, names))


def test_a_name_in_brackets_may_be_a_list_of_one():
    assert all(map(is_name_in_brackets, ["[other]", " {a b}"]))
    assert not any(map(is_name_in_brackets, ["[a, b]", "['a']", "[1]", "(a)", "a", ["a"], None]))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[0 0 ... 0 1]", "left out"),
        ("[0, ..., 1]", "left out"),
        ("['a', 'b]", "'b"),
        ("['a' 'b', 'c']", "'b"),
        ("['it''s']", "it"),
        ("[(1, 0]", "1"),
        ("[1,, 0]", "''"),
        ("[object Object]", "content"),
        ("[Ljava.lang.String;@1b6d3586", "content"),
        ("{'a': " + "[" * 100_000 + "]" * 100_000 + "}", "JSON"),
        *((text, "JSON") for text in ["{a=1, b=0}", "c(a = 1)", 'Dict("a" => 1)', "Map(a -> 1)", "[1;0;0]"]),
        *(
            (f"[{part}, x]", "neither")
            for part in ("2020_01", "0x1F", "1L", "0.5f0", "50%", "0\uff0c1", "\u0661", '\\\\"a', "|1", "a\x020")
        ),
        ("{:a 0.5, :b 1}", "neither"),
    ],
)
def test_what_cannot_be_read_is_refused(text, word):
    assert says(message_of(structure, text, "here"), f"here: ... {word}")


@pytest.mark.parametrize(
    "piece", ["<a>", "[1 1", "<1", "(1, ", "{a=1 ", "x=>", "[(", "\\'", '"a', "x:", "a =", ",'", " ", "1 ", "{a="]
)
def test_hostile_text(piece):
    """Of which a pattern that tries again and again would take minutes."""
    for end in ("", "]"):
        with contextlib.suppress(InputError):
            structure("[" + piece * 30_000 + end, "here")
        looks_printed("[" + piece * 30_000 + end)
