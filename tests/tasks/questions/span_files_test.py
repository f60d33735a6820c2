"""Files with any number of spans an annotator: our json lines, MultiSpanQA and PICO, with all that is counted."""

import gzip
import io
import itertools
import json
import os
import tarfile
from collections import Counter

import pytest

from tasks.questions.parts import for_training, split
from tests.tasks.one_line import says
from tests.tasks.questions.read_questions import fault, notes_of, read, texts

CONTEXT = "Ann 🤗 and Bo.\r\n  Zoë!"


def line(annotations=None, **fields):
    row = {"id": "q", "question": "Who?", "context": CONTEXT, **fields}
    return json.dumps(row if annotations is None else {**row, "annotations": annotations})


def marked(annotator, *spans):
    return {"annotator": annotator, "spans": [list(span) for span in spans]}


# Our own lines


def test_lines_give_spans_in_ascending_order_and_annotators_who_found_nothing(write):
    """Stray blanks in a name do not make another annotator; who has no name has his position."""
    given = [marked(" w1\t", (17, 21), (0, 3), (4, 9)), marked(2), {"spans": [[10, 12]]}, marked("  ")]
    path = write("a.jsonl", line(given))
    (question,), report = read(path)
    assert [one.annotator for one in question.annotations] == ["w1", "2", "3", "4"]
    assert [one.spans for one in question.annotations] == [((0, 3), (4, 9), (17, 21)), (), ((10, 12),), ()]
    assert texts(question) == [("Ann", "🤗 and", "Zoë!"), (), ("Bo",), ()]
    assert (question.place, report.notes) == (f"{path}:1", ())


def test_faulty_spans_are_dropped_never_clipped_and_counted_by_reason(write):
    faulty = [(3, 0), (17, 22), (-1, 3), (5, 5), (13, 17)]
    first = line([marked("a", (0, 3), *faulty), marked("b", *faulty[:2]), marked("c", (0, 21))])
    path = write("a.jsonl", first + "\n" + line([marked("d", (0, 99))], id="r"))
    questions = read(path)
    # b marked something that cannot be known: he must not count as one who found nothing.
    assert [row.annotations for row in questions.rows] == [(("a", ((0, 3),)), ("c", ((0, 21),)))]
    assert notes_of(questions) == {
        "spans that end before they start, dropped": 2,
        "spans outside of the text, dropped": 4,
        "empty spans, dropped": 1,
        "spans of blanks alone, dropped": 1,
        "annotators without a right span, left out": 2,
    }
    assert f"(first {path}:1: annotator a)" in str(questions.report)
    assert questions.report.dropped == {"none of its annotators has a right span": (1, f"{path}:2")}
    for labelled, counts in {"if there": [2, 0], "no": [0, 0]}.items():
        assert [len(row.annotations) for row in read(path, labelled).rows] == counts


def test_spans_that_overlap_become_one_and_those_that_touch_do_not(write):
    given = {
        "a": ([(0, 3), (2, 9)], ((0, 9),)),
        "b": ([(4, 9), (0, 12), (5, 6)], ((0, 12),)),
        "c": ([(0, 3), (0, 3)], ((0, 3),)),
        "d": ([(0, 3), (3, 9)], ((0, 3), (3, 9))),
    }
    questions = read(write("a.jsonl", line([marked(name, *spans) for name, (spans, _) in given.items()])))
    assert dict(questions.rows[0].annotations) == {name: merged for name, (_, merged) in given.items()}
    assert sum(notes_of(questions).values()) == 1 + 2 + 1


def test_lines_may_leave_out_id_annotations_and_document(write):
    rows = [
        {"question": "Who?", "context": "a b"},
        {"question": "Why?", "context": "a b", "annotations": None},
        {"question": "Who?", "context": "c", "annotations": [], "id": 7},
        {"question": "Who?", "context": "d", "document": 5, "note": "x"},
    ]
    path = write("a.jsonl", "\n".join(map(json.dumps, rows)))
    questions = read(path, "if there")
    assert [row.id for row in questions.rows] == ["1", "2", "7", "4"]
    assert [row.group for row in questions.rows] == ["1", "1", "7", "5"]  # the same passage is one document
    assert notes_of(questions) == {"field 'note', which is not read": 1, "no annotation, but kept": 4}
    assert notes_of(read(path, "no")) == {"field 'note', which is not read": 1}
    assert says(fault(path), "none of 4 ... no annotation: 4")
    for seed in range(4):
        parts = split(questions, 0.5, seed)
        assert sorted(len({"1", "2"} & {row.id for row in part.rows}) for part in parts) == [0, 2]
    path = write("b.jsonl", line(id="2") + "\n" + line(id=None))
    assert says(fault(path), "b.jsonl:2: the id '2' ... b.jsonl:1")


def test_one_line_alone_and_line_separators_inside_a_text(write):
    """A file of one object is a file of one line; U+2028 and U+0085 end none, a byte order mark is no text."""
    row = {"id": "q", "question": "?", "context": "a\u2028b\x85c", "annotations": [marked("x", (2, 5))]}
    whole, alone = (json.dumps(row, indent=indent, ensure_ascii=False) for indent in (1, None))
    packed = gzip.compress(alone.encode("utf-8-sig") + b"\r\n\r\n")
    for name, content in {"a.json": whole, "b.json": alone, "c.json": f"[{alone}]", "d.jsonl.gz": packed}.items():
        (question,) = read(write(name, content)).rows
        assert (question.id, texts(question)) == ("q", [("b\x85c",)])


LINE_FAULTS = [
    ([marked("a", (0, 3, "Ann"))], {}, "annotator a: span: [0, 3, 'Ann'] ... two whole numbers"),
    ([marked("a", (0, 3.0))], {}, "annotator a: span: [0, 3.0] ... two"),
    ([marked("a", (False, True))], {}, "annotator a: span: [False, True] ... two"),
    ([{"annotator": "a", "spans": [3]}], {}, "annotator a: span: 3 ... [start, end]"),
    ([{"annotator": "a"}], {}, "annotator a: spans is missing"),
    ([marked("a"), marked(" a ")], {}, "annotator a: stands twice"),
    ([marked(1.5)], {}, "annotation 1: annotator: 1.5 ... whole number"),
    (["a"], {}, "annotation 1: 'a' is no object"),
    ({}, {}, "annotations: {} is no list"),
    ([], {"context": 3}, "context: 3 is no text"),
    ([], {"question": ["Who"]}, "question: ['Who'] is no text"),
    ([], {"id": [1]}, "id: [1] ... whole number"),
]


@pytest.mark.parametrize(("annotations", "fields", "pieces"), LINE_FAULTS)
def test_a_fault_in_our_lines_has_one_line(write, annotations, fields, pieces):
    path = write("a.jsonl", line(annotations, **fields))
    assert says(fault(path, format="lines"), f"a.jsonl:1: {pieces}")


# MultiSpanQA


def words(context, label, /, **fields):
    row = {"id": "m", "question": ["who", "?"], "context": context.split("_"), "label": label.split()}
    return row | fields


def test_tags_become_spans_of_the_words_joined_by_blanks(write):
    """An I after O starts a span, and is counted."""
    rows = [words("Ann_and_Bo_🤗_Li_,_Zoë", "B O B I B O B", num_span=4), words("a_b_c_d_e", "I I O I B", id="n")]
    questions = read(write("a.json", json.dumps({"data": rows})))
    first, second = questions.rows
    assert (first.question, first.context) == ("who ?", "Ann and Bo 🤗 Li , Zoë")
    assert (first.annotations[0].annotator, texts(first)) == ("1", [("Ann", "Bo 🤗", "Li", "Zoë")])
    assert texts(second) == [("a b", "d", "e")]
    assert notes_of(questions) == {"tags I after O, each read as B": 2}


def test_all_o_is_a_vote_and_no_label_is_none(write):
    rows = [words("a_b", "O O"), words("a_b", "", id="n", label=None), words("a__b", "O B O", id="e")]
    path = write("a.json", json.dumps(rows))
    questions = read(path)
    trained = for_training(questions)
    assert [row.annotations for row in trained.rows] == [(("1", ()),)]
    assert list(trained.report.dropped) == ["no annotation", "none of its annotators has a right span"]
    assert [row.golds for row in questions.rows] == [(("1", ()),), (("1", ("",)),)]  # as the official scorer has them
    assert notes_of(questions)["empty spans, dropped"] == 1
    assert [row[2:4] for row in read(path, "no").rows] == [("a b", ()), ("a b", ()), ("a  b", ())]


WORD_FAULTS = [
    (words("a_b", "B"), "1 tags ... 2 words"),
    (words("a_b", "B b"), "label 2: 'b' ... B, I or O"),
    (words("a_b", "B O", context=["a", 2]), "context: word 2: 2 is no text"),
    (words("a_b", "B O", context="a b"), "context: 'a b' is no list"),
    (words("a_b", "B O", id=None), "id is missing"),
]


@pytest.mark.parametrize(("row", "pieces"), WORD_FAULTS)
def test_a_fault_in_multispanqa_has_one_line(write, row, pieces):
    assert says(fault(write("a.json", json.dumps([row])), format="multispanqa"), f"a.json: row 1: {pieces}")


# PICO

DOCUMENTS = {"1": b"Ten men\r\nand \xc3\xa9 women.\r\n\r\n", "2": b"\xef\xbb\xbfTwo cats.\n", "3": b"\n"}


def archive(contents):
    """A .tar.gz of a folder with NAME.txt for each name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name, data in contents.items():
            member = tarfile.TarInfo(f"docs/{name}.txt")
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture(params=["texts/docs", "texts", "docs.tar.gz"])
def documents(request, write, tmp_path):
    """A folder with the documents, one above it, or an archive; each also has what must not be read."""
    write("docs.tar.gz", archive({**DOCUMENTS, "._1": b"\xff"}))
    for name, data in {**DOCUMENTS, "._1": b"\xff"}.items():
        write(f"texts/docs/{name}.txt", data)
    return str(tmp_path / request.param)


def pico(*rows):
    return "\n".join(map(json.dumps, rows))


def men(document, *spans):
    return {"docid": document, "Men": {"w": [list(span) for span in spans]}}


def test_documents_are_read_as_they_are_for_offsets_count_line_ends_and_marks(write, documents):
    both = {**men("1", (13, 20), (4, 12)), "Women": {"w": [], "v": [[13, 14]]}}
    path = write("a.json", pico(both, {**men(2, (1, 4)), "split": "train"}))
    questions = read(path, documents=documents)
    asked = [(row.id, row.question, row.group) for row in questions.rows]
    assert asked == [("1/Men", "Men", "1"), ("1/Women", "Women", "1"), ("2/Men", "Men", "2")]
    assert questions.rows[0].context == "Ten men\r\nand é women.\r\n\r\n"
    assert [texts(row) for row in questions.rows] == [[("men\r\nand", "é women")], [(), ("é",)], [("Two",)]]
    mark = "documents with a byte order mark, which counts as their first character"
    assert notes_of(questions) == {"field 'split', which is not read": 1, mark: 1}
    assert says(fault(path, documents=documents, question="Who?"), "has the keys Men, Women; leave question empty")


def test_what_has_no_document_or_no_annotation_is_dropped_and_counted(write, documents):
    rows = [men("1", (0, 3)), men("1x", (0, 3)), {"docid": "2", "Men": {}}, men("3", (0, 1)), {"docid": "../docs/1"}]
    path = write("a.json", pico(*rows))
    questions = read(path, documents=documents, question="Which men?")
    assert [(row.id, row.question) for row in questions.rows] == [("1/Men", "Which men?")]
    absent = {"no file with its document": (2, f"{path}:2")}
    faulty = {"no annotation": (1, f"{path}:3"), "no passage": (1, f"{path}:4")}
    assert questions.report.dropped == absent | faulty
    kept = read(path, "no", documents=documents)
    assert [(row.id, row.annotations) for row in kept.rows] == [("1/Men", ()), ("2/Men", ()), ("3/Men", ())]
    assert kept.report.dropped == absent


def test_a_document_without_a_key_is_asked_for_those_of_the_others_or_for_the_question(write, documents):
    path = write("a.jsonl", pico({"docid": "2"}, {"docid": "1", "Men": {" w ": [[0, 3]]}, "Cats": {}}))
    rows = read(path, "if there", documents=documents, annotators="w").rows
    asked = [(row.id, row.question, len(row.annotations)) for row in rows]
    assert asked == [("2/Men", "Men", 0), ("2/Cats", "Cats", 0), ("1/Men", "Men", 1), ("1/Cats", "Cats", 0)]
    path = write("b.json", pico({"docid": "1"}, {"docid": "2"}))
    rows = read(path, "no", documents=documents, question="Who?").rows
    assert [(row.id, row.question) for row in rows] == [("1", "Who?"), ("2", "Who?")]
    assert says(fault(path, "no", documents=documents), "b.json:1: has no key ... question")


def test_faults_in_pico_files_and_their_documents(write, tmp_path):
    right = write("a.json", pico(men("1", (0, 3))))
    assert says(fault(right), "a.json: ... set documents")
    assert says(fault(right, documents=str(tmp_path / "none")), "none: no such folder or archive; set")
    cut = write("cut.tar.gz", archive({"1": os.urandom(50_000)})[:20_000])
    for wrong in (right, cut):
        assert says(fault(right, documents=wrong), f"{wrong}: ... .tar.gz")
    write("docs/1.txt", b"caf\n\xe9")
    folder = str(tmp_path / "docs")
    assert says(fault(right, documents=folder), "1.txt, byte 4 (line 2): 0xE9 ... encoding")
    assert read(right, documents=folder, encoding="1.txt=cp1252").rows[0].context == "caf\né"
    write("docs/more/1.txt", b"another")
    assert says(fault(right, documents=folder, encoding="1.txt=cp1252"), "1.txt: there is also ... 1.txt; name")
    write("docs/2.txt", b"Two cats")
    for row, pieces in [
        ({"docid": "2", "Men": [[0, 3]]}, "c.json: row 1: Men is a list"),
        ({"docid": "2", "Men": {"w": {"0": 3}}}, "c.json: row 1: Men: annotator w: spans: {'0': 3} is no list"),
        (men(None), "c.json: row 1: docid is missing"),
    ]:
        assert says(fault(write("c.json", pico(row)), documents=folder, format="pico"), pieces)


# Real files, as the README beside the data counts them


def test_multispanqa(shared):
    path = shared / "data/multispanqa/valid.json.gz"
    questions = read(path)
    assert (questions.report.kept, questions.report.dropped, questions.report.notes) == (653, {}, ())
    given = json.loads(gzip.decompress(path.read_bytes()))["data"]
    assert [len(row.annotations[0].spans) for row in questions.rows] == [row["num_span"] for row in given]
    inside = sum(len(context.split(" ")) for row in questions.rows for context in texts(row)[0])
    assert inside == 1911 + 4009  # words tagged B or I


PICO = [  # file, number of annotators -> documents, spans made one with another
    ("acl17-test", "professional.json", {1: 188}, 0),
    ("acl17-test", "crowdsourcing.json", {7: 89, 6: 63, 5: 26, 2: 4, 3: 4, 4: 3, 1: 2}, 3),
    ("dev", "crowdsourcing.json", {7: 234, 6: 155, 5: 61, 4: 27, 3: 19, 2: 4}, 11),
    ("test", "crowdsourcing.json", {7: 204, 6: 144, 5: 88, 4: 34, 3: 24, 2: 5, 1: 1}, 13),
    ("train", "crowdsourcing.json.gz",
     {7: 1564, 6: 1057, 5: 482, 4: 250, 3: 126, 2: 58, 1: 5, 8: 3, 11: 2, 9: 1, 13: 1}, 101),
]  # fmt: skip


@pytest.mark.parametrize(("part", "name", "annotators", "merged"), PICO)
def test_pico(shared, part, name, annotators, merged):
    folder = shared / "data/pico_participants"
    path = folder / "annotations" / part / f"PICO-annos-{name}"
    questions = read(path, documents=str(folder / "docs.tar.gz"))
    assert Counter(len(row.annotations) for row in questions.rows) == annotators
    assert sum(notes_of(questions).values()) == merged
    for question in questions.rows:
        for one in question.annotations:
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(one.spans))
            # Spans end where words do, so offsets that had slipped by one line end would show here.
            for _, end in one.spans:
                around = question.context[end - 1 : end + 1]
                assert len(around) == 1 or not around.isalnum()
