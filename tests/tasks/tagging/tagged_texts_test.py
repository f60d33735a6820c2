"""Exports of annotation tools as tagged sentences: words, tags, annotators, and what a report says of the rest."""

import json

import numpy as np
import pytest

from bert.prediction import tagging
from bert.words import places_of_words
from tasks import votes
from tasks.annotations.annotated_texts import LabelledSpan
from tasks.files.reports import Tally
from tasks.tagging import tag_scores
from tasks.tagging.job import labels_of
from tasks.tagging.tagged_texts import tags_of
from tests.tasks.annotations.read_texts import HARD, SPANS, lines
from tests.tasks.one_line import says
from tests.tasks.tagging.read_tags import read, refused, sentences

ANNA = "Anna saw New York."


def label_studio(*annotators, text=ANNA):
    """A task with the spans (start, end, label) of each annotator."""
    annotations = [
        {"completed_by": number, "was_cancelled": False, "result": [
            {"type": "labels", "from_name": "label", "to_name": "text",
             "value": {"start": a, "end": b, "text": text[a:b], "labels": [label]}}
            for a, b, label in spans
        ]}
        for number, spans in enumerate(annotators, 1)
    ]  # fmt: skip
    return {"id": 1, "data": {"text": text}, "annotations": annotations}


def exports(write, text, spans):
    """The same annotated text by each tool."""
    marks = [{"start": a, "end": b, "label": label} for a, b, label in spans]
    write("brat/a.txt", text)
    ann = write("brat/a.ann", "".join(f"T{i}\t{kind} {a} {b}\t{text[a:b]}\n" for i, (a, b, kind) in enumerate(spans)))
    return {
        "doccano": write("doccano.jsonl", lines({"id": 1, "text": text, "label": [list(span) for span in spans]})),
        "label_studio": write("studio.json", json.dumps([label_studio(spans, text=text)])),
        "prodigy": write("prodigy.jsonl", lines({"text": text, "spans": marks, "answer": "accept"})),
        "brat": ann[: -len("/a.ann")],
    }


def test_every_tool_gives_the_same_sentence(write):
    wanted = ["😀/O Anna/B-PER saw/O Jose\u0301/B-PER in/O 東/B-LOC 京/I-LOC 👩🏽\u200d🚒/O (/O Paris/B-LOC )/O ./O"]
    for tool, path in exports(write, HARD, SPANS).items():
        for settings in ({}, {"format": tool}):
            rows = read(path, **settings)
            assert sentences(rows) == wanted
            (row,) = rows.rows
            assert row.text == HARD
            assert all(HARD[start:end] == word for word, (start, end) in zip(row.words, row.places, strict=True))
            assert f"read as an export of {tool}" in str(rows.report)
        assert read(path, "no").rows[0].annotations == ()


def test_words_are_those_of_predictions(write):
    (row,) = read(exports(write, HARD, SPANS)["doccano"]).rows
    (predicted,) = tagging.words_of([HARD])
    assert (tuple(predicted.words), tuple(predicted.places)) == (row.words, row.places)


@pytest.mark.parametrize(
    ("spans", "tags", "counted"),
    [
        ([(1, 3, "A")], "B-A O O O O", "inside of a word"),
        ([(0, 5, "A"), (8, 12, "B")], "B-A O B-B O O", ""),  # blanks at the ends
        ([(0, 6, "A")], "B-A I-A O O O", "inside of a word"),
        ([(0, 4, "A"), (0, 8, "B"), (5, 17, "C")], "B-A B-C I-C I-C O", "share a word"),
        ([(0, 4, "A"), (0, 8, "B")], "B-B I-B O O O", "share a word"),
        ([(0, 4, "A"), (0, 4, "B")], "B-A O O O O", "share a word"),
        ([(9, 12, "A"), (13, 17, "A")], "O O B-A B-A O", ""),
        ([(4, 5, "A")], "O O O O O", "without a word"),
        ([], "O O O O O", ""),
    ],
)
def test_spans_become_tags_of_words(spans, tags, counted):
    tally = Tally()
    assert tags_of([LabelledSpan(*span) for span in spans], places_of_words(ANNA), "here", tally) == tuple(tags.split())
    assert [counted] == [note.split(",")[0] for note in tally.notes()] or counted in str(tally.notes())
    assert bool(counted) == bool(tally.notes())


def test_votes_of_three_annotators(write):
    """Two say PER and one nothing; one does not mark New York. By the formula of votes.py, with and without weights."""
    spans = [(0, 4, "PER"), (9, 17, "LOC")]
    path = write("a.json", json.dumps([label_studio(spans, spans[:1], spans[1:]), label_studio((), text="No.")]))
    rows = read(path)
    assert [name for name, _ in rows.rows[0].annotations] == ["1", "2", "3"]
    labels = labels_of(rows.rows)
    assert labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    counts = tag_scores.vote_counts(rows.rows, labels, {})
    soft, voted = votes.target(counts, votes.VoteSettings(), outside=0)
    third = 1 / 3
    wanted = [[third, 0, 0, 2 * third, 0], [1, 0, 0, 0, 0], [third, 2 * third, 0, 0, 0], [third, 0, 2 * third, 0, 0]]
    np.testing.assert_allclose(soft, [*wanted, *[[1, 0, 0, 0, 0]] * 3], atol=1e-6)
    assert voted.all()
    weighted, _ = votes.target(tag_scores.vote_counts(rows.rows, labels, {"3": 2.0}), votes.VoteSettings(), outside=0)
    np.testing.assert_allclose(weighted[0], [0.5, 0, 0, 0.5, 0])
    assert sentences(read(path, annotators="-1,-3")) == ["Anna/B-PER saw/O New/O York/O ./O"]
    assert says(refused(path, annotators="4"), "no annotator '4' ... 1, 2, 3")


def test_texts_that_are_not_annotated_train_nothing(write):
    rows = [{"text": ANNA, "label": [[0, 4, "PER"]]}, {"text": "b"}, {"text": "c", "label": []}]
    path = write("a.jsonl", lines(*rows))
    told = read(path)
    assert sentences(told) == ["Anna/B-PER saw/O New/O York/O ./O", "c/O"]
    assert dict(told.report.dropped) == {"no tags": (1, f"{path}:2")}
    assert len(read(path, no_spans="unlabelled").rows) == 1
    assert [row.words for row in read(path, "no").rows] == [("Anna", "saw", "New", "York", "."), ("b",), ("c",)]
    assert says(refused(write("b.jsonl", lines(*rows[1:2]))), "b.jsonl: none of 1 sentences ... no tags")
    rejected = write("c.jsonl", lines({"text": ANNA, "spans": [], "answer": "reject"}))
    assert says(refused(rejected), "c.jsonl: none of 1 ... export of prodigy ... answers reject, left out: 1 (first")


def test_json_lines_of_words_are_no_texts(write):
    path = write("a.jsonl", lines({"tokens": ["a"], "tags": ["O"], "text": "a"}))
    assert sentences(read(path)) == ["a/O"]
