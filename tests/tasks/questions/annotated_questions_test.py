"""Exports of annotation tools as questions: ids, votes, what is asked, what is told; settings of a finished model."""

import json

import pytest

from tasks.questions.annotated_questions import with_questions
from tasks.questions.question_rows import Annotation, Gold, QuestionSettings, questions_by_label
from tests.tasks.one_line import message_of, says
from tests.tasks.questions.read_questions import fault, read, texts

TEXT = "Ann 😀 sat\r\nin Rome, Ann"
PER, LOC = [(0, 3, "PER"), (20, 23, "PER")], [(14, 18, "LOC")]


def region(start, end, label):
    value = {"start": start, "end": end, "text": TEXT[start:end], "labels": [label]}
    return {"type": "labels", "from_name": "label", "to_name": "text", "value": value}


def task(**by):
    """A task of Label Studio; annotator -> his spans."""
    annotations = [{"completed_by": who, "result": [region(*span) for span in spans]} for who, spans in by.items()]
    return {"id": 7, "data": {"text": TEXT}, "annotations": annotations}


EXPORTS = {
    "a.json": [task(ann=PER + LOC, bob=PER, cleo=[]), {"id": 8, "data": {"text": "no one"}, "annotations": []}],
    "b.jsonl": [{"id": 7, "text": TEXT, "label": [(0, 3, "PER"), (21, 24, "PER"), (15, 19, "LOC")]}],  # UTF-16 units
    "c.jsonl": [
        {"text": TEXT, "_input_hash": 7, "answer": "accept", "_annotator_id": who,
         "spans": [dict(zip(("start", "end", "label"), span, strict=True)) for span in spans]}
        for who, spans in (("ann", PER + LOC), ("bob", PER), ("cleo", []))
    ],
}  # fmt: skip


@pytest.fixture
def export(write, tmp_path):
    """export(name) -> path of a file of EXPORTS, or of a folder of brat with the same spans."""

    def one(name):
        if name == "brat":
            write("d/7.txt", TEXT)
            write("d/7.ann", "T1\tPER 0 3\tAnn\nT2\tLOC 14 18\tRome\nT3\tPER 20 23\tAnn\n")
            return str(tmp_path / "d")
        rows = EXPORTS[name]
        return write(name, json.dumps(rows) if name == "a.json" else "\n".join(map(json.dumps, rows)))

    return one


@pytest.mark.parametrize("name", [*EXPORTS, "brat"])
def test_each_label_is_a_question_on_each_text(export, name):
    questions = read(export(name), questions="PER=Who is named?").rows
    assert [(row.id, row.question, row.label) for row in questions] == [
        ("7/PER", "Who is named?", "PER"), ("7/LOC", "LOC", "LOC"),
    ]  # fmt: skip
    people, places = questions
    assert people.context == TEXT
    assert texts(people)[0] == ("Ann", "Ann")
    assert people.golds[0].texts == ("Ann", "Ann")
    assert texts(places)[0] == ("Rome",)
    assert people.group == places.group


@pytest.mark.parametrize("name", ["a.json", "c.jsonl"])
def test_who_marked_nothing_with_a_label_votes_for_no_answer(export, name):
    people, places = read(export(name)).rows
    assert people.annotations == (
        Annotation("ann", ((0, 3), (20, 23))), Annotation("bob", ((0, 3), (20, 23))), Annotation("cleo", ()),
    )  # fmt: skip
    assert places.annotations == (Annotation("ann", ((14, 18),)), Annotation("bob", ()), Annotation("cleo", ()))
    assert places.golds[1:] == (Gold("bob", ()), Gold("cleo", ()))
    kept = read(export(name), annotators="-ann").rows
    assert [row.annotations[0].annotator for row in kept] == ["bob", "bob"]


def test_an_annotator_of_whom_no_span_of_a_label_can_be_used_has_no_vote_on_it(write):
    """The other labels have his votes."""
    rows = [
        {"id": 7, "text": TEXT, "label": [(0, 3, "PER"), (40, 50, "LOC")]},
        {"text": "Rome", "label": [(0, 4, "LOC")]},
    ]
    questions = read(write("a.jsonl", "\n".join(map(json.dumps, rows))))
    assert [row.id for row in questions.rows] == ["7/PER", "2/PER", "2/LOC"]
    assert says(str(questions.report), "dropped 1: none of its annotators has a right span")


def test_a_folder_with_a_file_for_each_annotator(write, tmp_path):
    for name, label in (("ann", [(0, 3, "PER")]), ("bob", [])):
        write(f"d/{name}.jsonl", json.dumps({"text": TEXT, "label": label}))
    (question,) = read(tmp_path / "d", no_spans="nothing").rows
    assert question.annotations == (Annotation("ann", ((0, 3),)), Annotation("bob", ()))


def test_texts_that_nobody_annotated_are_for_prediction(export):
    path = export("a.json")
    assert says(str(read(path).report), "4 rows read, 2 kept; dropped 2: no annotation ... row 2")
    assert [row.id for row in read(path, "no").rows] == ["7/PER", "7/LOC", "8/PER", "8/LOC"]
    assert not any(row.annotations for row in read(path, "no").rows)
    assert [row.id for row in read(path, "no", questions="PER=Who?").rows] == ["7/PER", "8/PER"]  # what is set alone


def test_a_finished_model_asks_what_was_asked_in_training(export, write):
    files = QuestionSettings(questions="PER=Who, if any?")
    stored = with_questions(files, read(export("a.json"), questions=files.questions))
    assert questions_by_label(stored.questions) == {"PER": "Who, if any?", "LOC": "LOC"}
    new = write("new.jsonl", json.dumps({"text": "Bob", "label": []}) + "\n")
    asked = read(new, "no", questions=stored.questions).rows
    assert [(row.id, row.question) for row in asked] == [("1/PER", "Who, if any?"), ("1/LOC", "LOC")]
    assert read(new, questions=stored.questions).rows[1].annotations == (Annotation("1", ()),)
    assert says(fault(new), "new.jsonl: no text has a labelled span; set questions")
    plain = write("own.jsonl", json.dumps({"question": "?", "context": "a", "annotations": []}) + "\n")
    assert with_questions(files, read(plain, "no")) == files
    assert says(str(read(plain, "no", questions="A=B").report), "questions is for exports ... unused")
    assert "offsets is for exports" in str(read(plain, "if there", offsets="utf16").report)
    assert "offsets" not in str(read(plain, "no", offsets="utf16").report)  # of what is written


def test_labels_that_are_asked_or_marked_only_are_told(export):
    report = str(read(export("brat"), questions="PRE=Who?,LOC=Where?").report)
    assert says(report, "questions has PRE, which no text has ... (labels: PER, LOC)")
    assert says(report, "asked by their names: PER")
    assert says(
        fault(export("brat"), question="Who?"), "has the labels PER, LOC; leave question empty, and set questions"
    )


def test_ids_that_stand_twice_are_numbered(write):
    rows = [{"id": 1, "text": text, "label": [[0, 1, "X"]]} for text in ("a b", "c d")]
    questions = read(write("a.jsonl", "\n".join(map(json.dumps, rows))), question="What?")
    assert [(row.id, row.question) for row in questions.rows] == [("1:1/X", "What?"), ("1:2/X", "What?")]
    assert says(str(questions.report), "ID:NUMBER: 2")
    unnamed = write("b.jsonl", "\n".join(json.dumps(row | {"id": None}) for row in rows))
    assert [row.id for row in read(unnamed).rows] == ["1/X", "2/X"]


def test_questions_with_a_text_beside_them_are_no_export(write):
    row = {"id": "q", "question": "Who?", "context": "Ann", "text": "other", "annotations": [{"spans": [[0, 3]]}]}
    assert texts(read(write("a.jsonl", json.dumps(row))).rows[0]) == [("Ann",)]


@pytest.mark.parametrize(
    ("setting", "asked"),
    [
        ("PER=Who?", {"PER": "Who?"}),
        (" PER = Who, if any, is it? , LOC=Where?,", {"PER": "Who, if any, is it?", "LOC": "Where?"}),
        ('{"PER": "Is 1 = 1, or not?"}', {"PER": "Is 1 = 1, or not?"}),
        ("PER=", {"PER": "PER"}),
        ("", {}),
    ],
)
def test_the_setting_of_questions(setting, asked):
    assert questions_by_label(setting) == asked


@pytest.mark.parametrize(
    ("setting", "pieces"),
    [
        ("PER", "questions: 'PER' ... LABEL=QUESTION"),
        ("=Who?", "'=Who?' ... LABEL=QUESTION"),
        ("PER=a,PER=b", "names 'PER' twice"),
        ('{"PER": 3}', "'PER=3' ... LABEL=QUESTION"),
        ('{"PER": ', "is no JSON"),
    ],
)
def test_other_settings_are_refused(setting, pieces):
    assert says(message_of(lambda: QuestionSettings(questions=setting)), pieces)
