"""Tagged sentences from json lines, and faults."""

import json

import pytest

from tests.tasks.one_line import says
from tests.tasks.tagging.read_tags import read, refused, sentences


def test_json_lines(write):
    lines = [
        {"tokens": ["new", "\u200b", "york"], "tags": ["B-X", "O", None], "document": "d"},
        {"tokens": ["a"], "tags": None, "document": "d"},
        {"tokens": [], "tags": []},
        {"tokens": ["\ud800b"], "tags": ["?"]},
        {"tokens": ["b"], "tags": ["O"]},
    ]
    path = write("a.jsonl", "\n".join(map(json.dumps, lines)))
    rows = read(path)
    assert sentences(rows) == ["new/B-X \u200b/O york/?", "b/O"]
    assert rows.rows[0].annotations[0][0] == "1"
    assert [row.document for row in rows.rows] == ["d", "5"]
    assert dict(rows.report.dropped) == {"no words": (1, f"{path}:3"), "no tags": (2, f"{path}:2")}
    assert [row.words for row in read(path, "no").rows][2:4] == [(), ("\ufffdb",)]
    listed = [{"w": line["tokens"], "t": line["tags"]} for line in lines]
    assert sentences(read(write("b.json", json.dumps(listed)), words="w", tags="t")) == sentences(rows)


def test_json_lines_with_annotators(write):
    ann = {"annotator": "ann", "tags": ["B", "I"]}
    bob = {"annotator": 7, "tags": ["O", None]}
    lines = [
        {"tokens": ["a", "b"], "annotations": [ann, bob]},
        {"tokens": ["c", "d"], "annotations": [bob]},
        {"tokens": ["e"], "annotations": []},
    ]
    path = write("a.jsonl", "\n".join(map(json.dumps, lines)))
    rows = read(path)
    assert rows.rows[0].annotations == (("ann", ("B", "I")), ("7", ("O", None)))
    assert sentences(rows) == ["a/B/O b/I/?", "c/O d/?"]
    assert sentences(read(path, annotators="-7")) == ["a/B b/I"]
    both = write("b.jsonl", json.dumps(lines[0] | {"tags": ["O", "B"]}))
    assert says(refused(both), "holds both tags and annotations; set tags")
    assert sentences(read(both, tags="tags")) == ["a/O b/B"]
    assert sentences(read(both, tags="annotations")) == ["a/B/O b/I/?"]


JSON_FAULTS = [
    ({"tokens": ["a"], "tags": [3]}, ":1: tags: tag 1 is 3 ... names"),
    ({"tokens": ["a"], "tags": ["O", "O"]}, ":1: tags: 2 tags for 1 words"),
    ({"tokens": ["a"], "tags": "O"}, ":1: tags: 'O' is no list"),
    ({"tokens": ["a"], "tags": ["B_X"]}, ":1: tags: tag 1: 'B_X' is no tag"),
    ({"tokens": "a b", "tags": ["O"]}, ":1: tokens: 'a b' is no list"),
    ({"tokens": ["a", ""], "tags": ["O", "O"]}, ":1: tokens: word 2 is ''"),
    ({"tokens": ["a", 5], "tags": ["O", "O"]}, ":1: tokens: word 2 is 5"),
    ({"words": ["a"], "tags": ["O"]}, ": no column 'tokens' ... set words"),
    ({"tokens": ["a"]}, ": no column 'tags' ... set tags"),
    ({"tokens": ["a"], "annotations": [{"tags": ["O"]}]}, ":1: annotations: annotation 1: {'tags': ['O']}"),
    ({"tokens": ["a"], "annotations": [{"annotator": None, "tags": ["O"]}]}, "annotation 1: annotator is None"),
    ({"tokens": ["a"], "annotations": [{"annotator": "x", "tags": ["O"]}] * 2}, "annotation 2: ... 'x' ... twice"),
    ({"tokens": ["a"], "annotations": [{"annotator": "x", "tags": []}]}, "annotation 1: 0 tags for 1 words"),
]


@pytest.mark.parametrize(("line", "pieces"), JSON_FAULTS)
def test_a_fault_in_json_has_one_line(write, line, pieces):
    assert says(refused(write("a.jsonl", json.dumps(line))), pieces)
