"""Predictions as tools import them: reading them gives the same texts, ids and spans, and what tools need beside."""

import json
import pathlib

import numpy as np
import pytest

from bert.words import places_of_words
from tasks.annotations.annotated_texts import AnnotationSettings, LabelledSpan, Origin, PredictedText
from tasks.annotations.tools import TOOLS, written
from tests.tasks.annotations.read_texts import HARD, SPANS, lines, read, spans, utf16
from tests.tasks.one_line import message_of, says

PIECES = [
    "Anna",
    "Jose\u0301",
    "東京",
    "👩🏽\u200d🚒",
    "😀",
    " ",
    "\r\n",
    "\n",
    "\t",
    "\u2028",
    "'",
    "(",
    "\u0939\u093f\u0928",
    "\u200b",
]


def predicted(text, found, id="", origin=None):
    scores = [0.5 + i / 100 for i in range(len(found))]
    return PredictedText(id, text, places_of_words(text), [LabelledSpan(*s) for s in found], scores, 0.75, origin)


def saved(tool, texts, folder, **settings):
    """The path of the predictions as files, those of Label Studio turned into annotations."""
    output = folder / {"label_studio": "out.json", "brat": "out"}.get(tool, "out.jsonl")
    files = written(tool, texts, output, AnnotationSettings(**settings), "tagger")
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.replace('"predictions"', '"annotations"').encode())
    return str(output)


def random_text(seed):
    """A text and some spans of its words."""
    rng = np.random.default_rng(seed)
    text = "".join(rng.choice(PIECES, rng.integers(1, 40)))
    places = places_of_words(text)
    found = [(*places[i], "PER") for i in range(len(places)) if rng.random() < 0.3]
    if len(places) > 2:
        found = [(places[0][0], places[2][1], "ORG"), *(span for span in found if span[0] >= places[2][1])]
    return text, found


@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_written_is_read_again(tool, tmp_path):
    texts = [(HARD, SPANS), ("\ufeffAnna.\r\n", [(1, 5, "PER")]), ("No.", []), *map(random_text, range(60))]
    rows = [predicted(text, found, f"d{i:03}") for i, (text, found) in enumerate(texts)]
    file = read(saved(tool, rows, tmp_path), no_spans="nothing")
    assert file.tool == tool
    assert [(text.id, text.text) for text in file.texts] == [(row.id, row.text) for row in rows]
    got = [[tuple(span) for _, found in text.annotations for span in found] for text in file.texts]
    assert got == [found for _, found in texts]


def content_of(tool, texts, folder, **settings):
    path = saved(tool, texts, folder, **settings)
    return json.loads(pathlib.Path(path).read_text().splitlines()[0])


@pytest.mark.parametrize(("source", "name"), [("hub/tagger", "tagger"), ("runs/names/model", "names")])
def test_a_model_is_called_as_its_folder_or_its_run(tmp_path, source, name):
    texts = [predicted("Anna sat.", [])]
    (content,) = written("label_studio", texts, tmp_path / "a.json", AnnotationSettings(), source).values()
    assert json.loads(content)[0]["predictions"][0]["model_version"] == name


def test_the_fields_that_each_tool_needs(tmp_path):
    row = predicted("Anna sat.", [(0, 4, "PER")], "7")
    assert content_of("doccano", [row], tmp_path) == {"id": "7", "text": "Anna sat.", "label": [[0, 4, "PER"]]}
    (task,) = content_of("label_studio", [row], tmp_path, controls="ner, doc")
    assert task["data"] == {"text": "Anna sat.", "id": "7"}
    (prediction,) = task["annotations"]
    assert (prediction["model_version"], prediction["score"]) == ("tagger", 0.75)
    assert prediction["result"] == [
        {"id": "1-1", "from_name": "ner", "to_name": "doc", "type": "labels", "score": 0.5,
         "value": {"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]}}
    ]  # fmt: skip
    (unsure,) = content_of("label_studio", [predicted("Anna", [])._replace(score=None)], tmp_path)
    assert "score" not in unsure["annotations"][0]
    task = content_of("prodigy", [row], tmp_path)
    assert task["spans"] == [{"start": 0, "end": 4, "label": "PER", "score": 0.5, "token_start": 0, "token_end": 0}]
    assert task["tokens"][:2] == [
        {"text": "Anna", "start": 0, "end": 4, "id": 0, "ws": True},
        {"text": "sat", "start": 5, "end": 8, "id": 1, "ws": False},
    ]
    assert "answer" not in task
    path = pathlib.Path(saved("brat", [row._replace(spans=[LabelledSpan(0, 8, "A B:C")])], tmp_path))
    assert (path / "7.ann").read_text() == "T1\tA_B_C 0 8\tAnna sat\n"
    assert says(message_of(lambda: AnnotationSettings(controls="label")), "controls is 'label' ... label,text")


def test_offsets_count_what_the_tool_counts(tmp_path):
    row = predicted(HARD, SPANS)
    wide = [[utf16(a), utf16(b), label] for a, b, label in SPANS]
    assert content_of("doccano", [row], tmp_path)["label"] == wide
    assert content_of("doccano", [row], tmp_path, offsets="code_points")["label"] == [list(span) for span in SPANS]
    for count in (int, utf16):  # as in the file that was read
        marks = [[count(a), count(b), label] for a, b, label in SPANS]
        (tmp_path / "in.jsonl").write_text(lines({"text": HARD, "label": marks}))
        (text,) = read(tmp_path / "in.jsonl").texts
        assert content_of("doccano", [row._replace(origin=text.origin)], tmp_path)["label"] == marks
    (task,) = content_of("label_studio", [row._replace(origin=text.origin)], tmp_path)  # which was another tool's
    assert [region["value"]["start"] for region in task["annotations"][0]["result"]] == [a for a, _, _ in SPANS]
    ann = pathlib.Path(saved("brat", [predicted("New\r\nYork", [(0, 9, "LOC")])], tmp_path)) / "000001.ann"
    assert ann.read_text() == "T1\tLOC 0 3;5 9\tNew York\n"


def test_fields_of_the_input_stay_where_it_is_of_the_same_tool(tmp_path):
    inputs = {
        "doccano": {"id": 4, "data": "Anna sat.", "label": [[5, 8, "X"]], "url": "a/b", "relations": []},
        "label_studio": {"id": 4, "data": {"body": "Anna sat.", "url": "a/b"}, "meta": {"x": 1}, "annotations": [
            {"completed_by": 1, "result": [{"type": "labels", "from_name": "ner", "to_name": "doc",
                                           "value": {"start": 5, "end": 8, "text": "sat", "labels": ["X"]}}]}]},
        "prodigy": {"text": "Anna sat.", "_input_hash": 4, "_task_hash": 5, "answer": "accept", "spans": [],
                    "url": "a/b", "tokens": [{"text": "Anna", "start": 0, "end": 4, "id": 0, "ws": True}],
                    "_view_id": "ner_manual", "versions": []},
    }  # fmt: skip
    for tool, row in inputs.items():
        (tmp_path / "in.jsonl").write_text(lines(row))
        (text,) = read(tmp_path / "in.jsonl").texts
        found = predicted(text.text, [(0, 4, "PER")], text.id, text.origin)
        got = content_of(tool, [found], tmp_path)
        if tool == "label_studio":
            assert (got[0]["id"], got[0]["data"], got[0]["meta"]) == (4, row["data"], row["meta"])
            assert got[0]["annotations"][0]["result"][0]["from_name"] == "ner"
        else:
            assert (got["url"], got["text"], "data" in got) == ("a/b", "Anna sat.", False)
            assert (got.get("tokens"), "entities" in got, "relations" in got) == (row.get("tokens"), False, False)
            assert not {"answer", "_task_hash", "_view_id", "versions"} & got.keys()
        for other in TOOLS.keys() - {tool, "brat"}:
            assert "a/b" not in json.dumps(content_of(other, [found], tmp_path))


def test_names_of_tags_and_tokens_are_those_of_the_input_where_they_fit(tmp_path):
    region = {"type": "labels", "from_name": "ner", "to_name": "doc", "value": {"start": 0, "end": 4}}
    row = {"data": {"text": "Anna sat."}, "predictions": [{"result": [region]}]}
    found = predicted("Anna sat.", [(0, 4, "PER")])
    (task,) = content_of("label_studio", [found._replace(origin=Origin("label_studio", "utf16", row))], tmp_path)
    assert [task["annotations"][0]["result"][0][name] for name in ("from_name", "to_name")] == ["ner", "doc"]
    row = {"text": "Anna sat.", "tokens": [{"text": "Anna sat.", "start": 0, "end": 9, "id": 0}]}
    task = content_of("prodigy", [found._replace(origin=Origin("prodigy", "code_points", row))], tmp_path)
    assert [token["text"] for token in task["tokens"]] == ["Anna", "sat", "."]


def test_documents_of_brat_have_safe_names(tmp_path):
    rows = [predicted("a", [], id) for id in ("../up", "sub/b", "x", "x", "", "/abs", "c d", "..")]
    files = written("brat", rows, tmp_path / "out", AnnotationSettings(), "tagger")
    names = [str(path.relative_to(tmp_path / "out")) for path in files if path.suffix == ".txt"]
    assert names == ["000001.txt", "sub/b.txt", "x.txt", "000004.txt", *(f"00000{i}.txt" for i in (5, 6, 7, 8))]


def test_documents_of_an_earlier_run_are_not_left_beside_those_of_brat(tmp_path):
    texts = [predicted("Anna", [(0, 4, "PER")], name) for name in ("a", "b")]
    saved("brat", texts, tmp_path)
    saved("brat", texts[::-1], tmp_path)
    assert says(message_of(lambda: saved("brat", texts[:1], tmp_path)), "out: holds b.txt ... another folder")


def test_written_without_a_span_is_not_an_annotation_of_a_tool_that_can_tell(tmp_path):
    path = saved("prodigy", [predicted("No.", [])], tmp_path)
    assert spans(read(path, format="prodigy")) == [{}]
