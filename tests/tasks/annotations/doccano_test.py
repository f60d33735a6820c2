"""doccano's files of all versions, by one annotator and by several, and what their offsets count."""

import gzip

import pytest

from tests.tasks.annotations.read_texts import HARD, SPANS, lines, read, refused, said, spans, utf16
from tests.tasks.one_line import says

ANNA = "Anna sat."


@pytest.mark.parametrize(
    "fields",
    [
        {"id": 1, "label": [[0, 4, "PER"]], "Comments": []},
        {"id": 1, "labels": [[0, 4, "PER"]], "meta": {}, "annotation_approver": None},
        {"id": 1, "entities": [[0, 4, "PER"]], "username": "x", "metadata": {}},
        {"id": 1, "entities": [{"id": 9, "label": "PER", "start_offset": 0, "end_offset": 4}], "relations": []},
        {"id": 1, "spans": [{"start": 0, "end": 4, "label": "PER"}], "label": ["about people"]},
        {"id": 1, "data": ANNA, "label": [[0, 4, "PER"]]},
        {"id": 1, "data": "about people", "text": ANNA, "label": [[0, 4, "PER"]]},
        {"id": 1, "annotations": [{"label": "PER", "start_offset": 0, "end_offset": 4}], "meta": {}},
    ],
)
def test_the_spans_of_every_version(write, fields):
    row = fields if "data" in fields else {"text": ANNA, **fields}
    for path in (
        write("a.jsonl", b"\xef\xbb\xbf" + lines(row).encode()),
        write("a.json.gz", gzip.compress(lines(row).encode())),
    ):
        file = read(path)
        assert (file.tool, file.annotators) == ("doccano", ())
        assert spans(file) == [{"1": [(0, 4, "PER")]}]
        (text,) = file.texts
        assert (text.id, text.text, text.origin.row) == ("1", ANNA, row)
        assert text.place in (f"{path}:1", f"{path}: row 1")


def test_no_spans_no_list_and_no_field_are_not_the_same(write):
    path = write("a.jsonl", lines({"text": "a", "label": []}, {"text": "b", "label": None}, {"text": "c"}))
    assert spans(read(path)) == [{"1": []}, {}, {}]
    assert says(said(read(path)), "texts without a span, read as nothing in them ... : 1 (first ... a.jsonl:1)")
    assert spans(read(path, no_spans="unlabelled")) == [{}, {}, {}]


def test_users_in_one_file_are_annotators(write):
    marks = [{"label": 2, "start_offset": 0, "end_offset": 4, "user": user} for user in (1, 5)]
    file = read(write("a.jsonl", lines({"id": 1, "text": ANNA, "annotations": marks})))
    assert spans(file) == [{"1": [(0, 4, "2")], "5": [(0, 4, "2")]}]


def test_offsets_count_what_makes_words_of_the_spans(write):
    """UTF-16 units as the page of today counts, code points as that of 2019; told where it matters, and a setting."""
    points = lines({"text": HARD, "label": [list(span) for span in SPANS]})
    units = lines({"text": HARD, "label": [[utf16(a), utf16(b), label] for a, b, label in SPANS]})
    for content, name in ((points, "code points"), (units, "UTF-16 units")):
        file = read(write("a.jsonl", content))
        assert spans(file) == [{"1": SPANS}]
        assert says(said(file), f"offsets count {name} ... 4 fit {name}")
    forced = read(write("a.jsonl", points), offsets="utf16")
    assert spans(forced) != [{"1": SPANS}]
    assert "offsets" not in said(read(write("b.jsonl", lines({"text": ANNA, "label": [[0, 4, "PER"]]}))))
    for row in ({"text": "😀"}, {"text": f"{ANNA} 😀", "label": [[0, 4, "PER"]]}):  # where it does not matter
        undecided = read(write("c.jsonl", lines(row)))
        assert (undecided.notes, undecided.texts[0].origin.offsets) == ([], "utf16")
    undecided = read(write("d.jsonl", lines({"text": "😀 xxxx", "label": [[3, 5, "A"]]})))
    assert says(said(undecided), "offsets count UTF-16 units ... set offsets")


def test_a_span_outside_of_the_text_is_not_read_in_another_unit(write):
    file = read(write("a.jsonl", lines({"text": "😀 ab", "label": [[2, 4, "A"], [4, 5, "B"]]})))
    assert spans(file) == [{"1": [(2, 4, "A")]}]
    assert says(said(file), "outside of the text, dropped: 1")


def test_unpaired_surrogates_keep_their_place(write):
    path = write("a.jsonl", '{"text": "\\ud800 Anna \\ud83d\\ude00", "label": [[2, 6, "PER"]]}')
    assert [text.text for text in read(path).texts] == ["\ufffd Anna 😀"]
    assert spans(read(path)) == [{"1": [(2, 6, "PER")]}]
    assert says(said(read(path)), "unpaired surrogates ... : 1 (first")


def test_blanks_in_labels_are_single_ones(write):
    file = read(write("a.jsonl", lines({"text": ANNA, "label": [[0, 4, " a\n  name "]]})))
    assert spans(file) == [{"1": [(0, 4, "a name")]}]


def test_labels_of_whole_texts_are_no_spans(write):
    file = read(write("a.jsonl", lines({"text": ANNA, "label": ["good"]}, {"text": ANNA, "label": []})))
    assert spans(file) == [{}, {"1": []}]
    assert says(said(file), "label is no list of spans ... : 1 (first")


def test_spans_that_are_none_are_dropped_and_counted(write):
    labels = [
        [0, 4, "PER"],
        [5, 99, "A"],
        [-1, 2, "A"],
        [3, 3, "A"],
        [4, 5, "A"],
        [6, 2, "A"],
        [0, 4, " "],
        [0, 4, None],
    ]
    file = read(write("a.jsonl", lines({"text": ANNA, "label": labels}, {"text": ANNA, "label": labels[1:3]})))
    assert spans(file) == [{"1": [(0, 4, "PER")]}, {}]  # nothing right is not "nothing there"
    for what, count in {
        "outside of the text": 4, "empty spans": 1, "blanks alone": 1, "end before": 1, "without a label": 2,
        "no span can be used": 1,
    }.items():  # fmt: skip
        assert says(said(file), f"{what} ... : {count} (first")


def test_what_is_no_export_is_refused_by_its_place(write):
    good = {"text": ANNA, "label": [[0, 4, "PER"]]}
    assert says(refused(write("a.jsonl", lines(good, {"text": ANNA, "label": ["PER"]}))), "a.jsonl:2: label ... 'PER'")
    assert says(refused(write("a.jsonl", lines(good, {"text": ANNA, "label": "PER"}))), "a.jsonl:2: label ... list")
    assert says(refused(write("a.jsonl", lines(good, {"text": None}))), "a.jsonl:2: text ... None ... set text")
    assert says(refused(write("a.json", "[1, 2]")), "a.json ... list of objects")
    assert says(refused(write("a.jsonl", lines(good)), format="doccanno"), "format is 'doccanno' ... doccano")
