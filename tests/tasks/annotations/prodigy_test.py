"""Prodigy's files: answers, views and sessions."""

from tests.tasks.annotations.read_texts import HARD, SPANS, lines, read, refused, said, spans
from tests.tasks.one_line import says

ANNA = "Anna sat."
PERSON = {"start": 0, "end": 4, "label": "PER", "token_start": 0, "token_end": 0}


def row(text=ANNA, marks=(PERSON,), number=1, answer="accept", **others):
    tokens = [{"text": text, "start": 0, "end": len(text), "id": 0, "ws": False}]
    given = {"text": text, "_input_hash": number, "_task_hash": 5, "_is_binary": False, "spans": list(marks)}
    return given | {"tokens": tokens, "answer": answer, "_view_id": "ner_manual", "_timestamp": 1, **others}


def test_only_accepted_answers_are_annotations(write):
    rows = [row(number=i, answer=answer) for i, answer in enumerate(("accept", "reject", "ignore"))]
    rows += [row(number=3, marks=()), row(number=4)]
    del rows[3]["spans"]  # nothing was marked
    del rows[4]["answer"]
    file = read(write("a.jsonl", lines(*rows)))
    assert (file.tool, file.annotators) == ("prodigy", ())
    assert spans(file) == [{"1": [(0, 4, "PER")]}, {}, {}, {"1": []}, {"1": [(0, 4, "PER")]}]
    assert [text.id for text in file.texts] == ["0", "1", "2", "3", "4"]
    assert says(said(file), "answers reject, left out: 1 (first ... a.jsonl:2)")
    assert says(said(file), "answers ignore, left out: 1")


def test_lines_of_one_text_are_its_annotators(write):
    org = PERSON | {"label": "ORG"}
    rows = [
        row(_annotator_id="ner-anna", _session_id="ner-anna"),
        row("b", (), 2, _session_id="ner-anna"),
        row(marks=(org,), _session_id="ner-ben"),
        row(marks=(), _annotator_id="ner-cleo", answer="reject"),
        row(marks=(org,), _annotator_id="ner-anna"),
    ]
    file = read(write("a.jsonl", lines(*rows)))
    assert spans(file) == [{"ner-anna": [(0, 4, "ORG")], "ner-ben": [(0, 4, "ORG")]}, {"ner-anna": []}]
    assert file.annotators == ("ner-anna", "ner-ben")
    assert says(said(file), "annotated again, left out: 1 (first ... a.jsonl:5)")


def test_answers_that_do_not_tell_of_all_words(write):
    rows = [
        row(number=1, _view_id="ner", _is_binary=True),
        row(number=2, _view_id="choice"),
        row(number=3, _view_id="review"),
    ]
    old = row(number=4, _view_id="ner")
    del old["_is_binary"]
    file = read(write("a.jsonl", lines(*rows, old, old | {"_input_hash": 5, "spans": []})))
    assert spans(file) == [{}, {}, {"1": [(0, 4, "PER")]}, {}, {"1": []}]
    assert says(said(file), "answers on a single span ... : 2 (first ... a.jsonl:1)")
    assert says(said(file), "view choice ... : 1 (first ... a.jsonl:2)")


def test_offsets_are_code_points(write):
    marks = [{"start": a, "end": b, "label": label} for a, b, label in SPANS]
    assert spans(read(write("a.jsonl", lines(row(HARD, marks))))) == [{"1": SPANS}]


def test_what_is_no_export_is_refused_by_its_place(write):
    assert says(refused(write("a.jsonl", lines(row(), row(spans=[[0, 4, "PER"]])))), "a.jsonl:2: spans")
    assert says(refused(write("a.jsonl", lines(row() | {"text": None})), format="prodigy"), "a.jsonl:1: text")
