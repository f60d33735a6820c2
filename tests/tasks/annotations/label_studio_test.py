"""Label Studio's files: every version of the JSON, annotators, and regions that are no spans of the text."""

import json

import pytest

from tests.tasks.annotations.read_texts import HARD, SPANS, lines, read, refused, said, spans, utf16
from tests.tasks.one_line import says

ANNA = "Anna sat."


def region(start=0, end=4, label="PER", said="Anna", **others):
    value = {"start": start, "end": end, "labels": [label]} | ({"text": said} if said is not None else {})
    return {"id": "x1", "type": "labels", "from_name": "label", "to_name": "text", "value": value} | others


def task(*annotations, text=ANNA, **others):
    return {"id": 7, "data": {"text": text}, "annotations": list(annotations), "predictions": [], **others}


def by(who, *regions, **others):
    return {"completed_by": who, "was_cancelled": False, "ground_truth": False, "result": list(regions), **others}


def test_tasks_as_a_list_an_object_and_lines(write):
    row = task(by(3, region()))
    contents = {"a.json": json.dumps([row]), "b.json": json.dumps(row), "c.jsonl": lines(row)}
    for name, content in contents.items():
        file = read(write(name, "\ufeff" + content))
        assert (file.tool, spans(file), file.annotators) == ("label_studio", [{"3": [(0, 4, "PER")]}], ("3",))
        assert (file.texts[0].id, file.texts[0].origin.row) == ("7", row)


def test_annotators_by_number_and_by_address(write):
    people = [3, {"id": 4, "email": "ben@x.org"}, {"id": 5}]
    marks = [by(who, region(label=label)) for who, label in zip(people, ("PER", "ORG", "PER"), strict=True)]
    file = read(write("a.json", json.dumps([task(*marks)])))
    assert spans(file) == [{"3": [(0, 4, "PER")], "ben@x.org": [(0, 4, "ORG")], "5": [(0, 4, "PER")]}]
    old = {"id": 1, "data": {"text": ANNA}, "completions": [{"result": [region()]}, {"result": [], "skipped": True}]}
    assert spans(read(write("b.json", json.dumps([old])))) == [{"1": [(0, 4, "PER")]}]
    unnamed = old | {"completions": [{"result": [region()]}, {"result": []}]}
    assert spans(read(write("d.json", json.dumps([unnamed])))) == [{"1": [(0, 4, "PER")], "2": []}]
    old["completions"][0]["created_username"] = "eric"
    assert spans(read(write("c.json", json.dumps([old])))) == [{"eric": [(0, 4, "PER")]}]


def test_what_is_no_annotation(write):
    """Skipped ones and predictions; nothing found is an annotation; the last of an annotator counts."""
    rows = [
        task(by(1, region(), was_cancelled=True), predictions=[{"result": [region()]}]),
        task(by(1), by(2, region()), by(2)),
        task(),
        {"data": {"text": ANNA}},
    ]
    file = read(write("a.json", json.dumps(rows)))
    assert spans(file) == [{}, {"1": [], "2": []}, {}, {}]
    assert says(said(file), "skipped, left out: 1 (first ... row 1)")
    assert says(said(file), "annotated again, left out: 1 (first ... row 2)")


def test_a_ground_truth_stands_alone(write):
    truth = by(9, region(label="ORG"), ground_truth=True)
    file = read(write("a.json", json.dumps([task(by(1, region()), truth), task(by(1, region()))])))
    assert spans(file) == [{"9": [(0, 4, "ORG")]}, {"1": [(0, 4, "PER")]}]
    assert says(said(file), "beside a ground truth, left out: 1")


def test_json_min_has_a_row_for_each_annotation(write):
    value = {"start": 0, "end": 4, "text": "Anna", "labels": ["PER", "ORG"]}
    base = {"id": 7, "text": ANNA, "note": "x", "created_at": "2024", "updated_at": "2024", "lead_time": 1.5}
    rows = [
        base | {"annotator": 3, "annotation_id": 1, "label": [value]},
        base | {"annotator": "ben@x.org", "annotation_id": 2},
        base | {"id": 8, "annotator": None, "annotation_id": None},
    ]
    file = read(write("a.json", json.dumps(rows)))
    assert spans(file) == [{"3": [(0, 4, "PER"), (0, 4, "ORG")], "ben@x.org": []}, {}]
    assert [text.id for text in file.texts] == ["7", "8"]
    for row in rows:
        del row["id"]
    assert [text.id for text in read(write("b.json", json.dumps(rows))).texts] == [""] * 3


@pytest.mark.parametrize("count", [utf16, int])
def test_the_text_of_a_span_tells_what_offsets_count(write, count):
    """Also where blanks and line ends were written otherwise, and where the unit changes within a file."""
    shown = [HARD[a:b] for a, b, _ in SPANS]
    marks = [region(count(a), count(b), label, text) for (a, b, label), text in zip(SPANS, shown, strict=True)]
    file = read(write("a.json", json.dumps([task(by(1, *marks), text=HARD)])))
    assert spans(file) == [{"1": SPANS}]
    start, end, label = SPANS[3]
    mixed = [*marks[:3], region(start, end, label, "Paris"), region(utf16(start), utf16(end), label, "Paris")]
    mixed.append(region(count(0), count(SPANS[1][1]), "ALL", "😀  Anna\\n\\nsaw Jose\u0301"))
    file = read(write("b.json", json.dumps([task(by(1, *mixed), text=HARD)])))
    assert spans(file) == [{"1": [*SPANS, SPANS[3], (0, SPANS[1][1], "ALL")]}]


def test_a_unit_that_is_set_is_the_only_one(write):
    marks = [region(utf16(a), utf16(b), label, HARD[a:b]) for a, b, label in SPANS]
    path = write("a.json", json.dumps([task(by(1, *marks), text=HARD)]))
    assert spans(read(path, offsets="utf16")) == [{"1": SPANS}]
    forced = read(path, offsets="code_points")
    assert spans(forced) == [{}]
    assert says(said(forced), "text is not that at their offsets, dropped: 3")


def test_spans_elsewhere_and_regions_of_other_kinds_are_counted(write):
    html = region(start="/div[1]/text()[1]", end="/div[1]/text()[1]", startOffset=0)
    others = [{"type": "choices", "value": {"choices": ["a"]}}, region(type="hypertextlabels"), {"type": "relation"}]
    bare = region()
    del bare["value"]["labels"]
    marks = [region(), region(1, 5), region(5, 8, said="sat"), region(said=None, start=5, end=8), html, bare, *others]
    file = read(write("a.json", json.dumps([task(by(1, *marks))])))
    assert spans(file) == [{"1": [(0, 4, "PER"), (5, 8, "PER"), (5, 8, "PER")]}]
    for what in ("text is not that at their offsets", "no whole numbers", "without a label", "type choices",
                 "type hypertextlabels", "type relation"):  # fmt: skip
        assert says(said(file), f"{what} ... : 1 (first")


def test_regions_of_two_texts_of_a_task(write):
    """Those of the text that is read count, which is the one with most, or the one that is set; told by their name."""
    first, second = region(0, 4, "PER", "Anna", to_name="a"), region(0, 3, "LOC", "Rom", to_name="b")
    bare = region(0, 2, "LOC", None, to_name="b")
    rows = [{"data": {"title": "Rom is far.", "body": ANNA}, "annotations": [by(1, first, first, second, bare)]}]
    path = write("a.json", json.dumps(rows))
    assert spans(read(path)) == [{"1": [(0, 4, "PER")] * 2}]
    assert says(said(read(path)), "regions of another text ... : 2 (first")
    named = [region(0, 4, "A", None, to_name="body"), region(0, 3, "B", None, to_name="title")]
    told = write("b.json", json.dumps([{"data": rows[0]["data"], "annotations": [by(1, *named)]}]))
    assert (read(told).texts[0].text, spans(read(told))) == (ANNA, [{"1": [(0, 4, "A")]}])
    titles = read(path, text="title")
    assert (titles.texts[0].text, spans(titles)) == ("Rom is far.", [{"1": [(0, 3, "LOC"), (0, 2, "LOC")]}])


def test_spans_of_another_form_are_not_nothing(write):
    choice = {"type": "choices", "value": {"choices": ["a"]}}
    rows = [task(by(1, region(type="hypertextlabels"), choice)), task(by(1, choice))]
    file = read(write("a.json", json.dumps(rows)))
    assert spans(file) == [{}, {"1": []}]
    assert says(said(file), "no span can be used, left out: 1 (first ... row 1)")


def test_the_field_with_the_text(write):
    data = {"title": "Anna, a title", "body": {"content": ANNA}, "n": 3}
    rows = [{"id": 1, "data": data, "annotations": [by(1, region(5, 8, "VERB", "sat"))]}]
    path = write("a.json", json.dumps(rows))
    assert read(path).texts[0].text == ANNA
    assert read(path, text="title").texts[0].text == "Anna, a title"
    rows[0]["annotations"] = []
    path = write("b.json", json.dumps(rows))
    assert says(refused(path), "b.json ... title, body.content ... set text")
    assert read(path, text="body.content").texts[0].text == ANNA
    assert says(refused(path, text="n"), "b.json: row 1: data: n: 3 ... set text")
    assert read(write("c.json", json.dumps([{"data": {"id": "t1", "text": ANNA}}]))).texts[0][:2] == ("t1", ANNA)


@pytest.mark.parametrize("annotation", [3, {"result": "x"}, {"completed_by": 1, "result": {}}])
def test_what_is_no_annotation_is_refused_by_its_place(write, annotation):
    path = write("a.json", json.dumps([task(by(1, region())), task(annotation)]))
    assert says(refused(path), "a.json: row 2: annotations ... no annotation")
