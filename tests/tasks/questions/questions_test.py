"""Questions: which format a file has, what is kept and counted, faults in one line, and the split."""

import json

import numpy as np
import pytest

from tasks.questions.parts import for_training, passage_keys, split
from tests.tasks.one_line import message_of, says
from tests.tasks.questions.read_questions import answer, fault, notes_of, read, squad, texts


def test_a_split_is_over_what_can_be_trained_on(write):
    """Questions without a position change neither part's others; those of the validation part are scored."""
    right = [{"title": f"t{i}", "context": "a b a", "id": f"r{i}", "question": "?", "answers": [answer("b", 2)]}
             for i in range(12)]  # fmt: skip
    lost = [row | {"id": f"l{i}", "answers": [answer("a", 1)]} for i, row in enumerate(right)]
    alone = [lost[0] | {"id": "alone", "title": "alone"}]
    more = split(read(write("a.json", json.dumps([*alone, *right, *lost]))), 0.3, 3)
    fewer = split(read(write("b.json", json.dumps(right))), 0.3, 3)
    for part, other in zip(more, fewer, strict=True):
        assert [row.id for row in part.rows if not row.untrainable] == [row.id for row in other.rows]
    assert [row.id for row in for_training(more[0]).rows] == [row.id for row in fewer[0].rows]
    report = for_training(more[0]).report
    assert report.kept + sum(report.elsewhere.values()) + sum(n for n, _ in report.dropped.values()) == report.read
    assert {row.id[1:] for row in more[1].rows} == {row.id[1:] for row in fewer[1].rows}
    assert len(more[1].rows) == 2 * len(fewer[1].rows)
    nothing = read(write("c.json", json.dumps(lost)))
    assert says(message_of(for_training, nothing), "c.json: none of 12 ... no position")


@pytest.mark.parametrize("context", ["", "  ", "\u200b", "\u200b \ufeff\r\n"])
def test_passages_with_nothing_to_see_keep_their_id_unless_they_must_teach(write, context):
    path = write("a.json", squad({"answers": []}, context=context))
    for labelled in ("if there", "no"):
        questions = read(path, labelled)
        assert [(row.id, row.context) for row in questions.rows] == [("q1", context)]
        assert notes_of(questions) == {"no passage, but kept": 1}
    assert says(message_of(for_training, read(path)), "a.json: none of 1 ... no passage: 1")


def test_annotations_are_not_looked_at_where_nobody_wants_them(write):
    questions = read(write("a.json", squad({"answers": "yes"}, {})), "no")
    assert [row.annotations for row in questions.rows] == [(), ()]
    assert not questions.report.notes


def test_a_question_without_the_field_answers_is_not_annotated(write):
    path = write("a.json", squad({}, {"answers": []}, {"answers": None}))
    questions = read(path)
    assert [row.id for row in questions.rows] == ["q2"]
    assert questions.report.dropped == {"no annotation": (2, f"{path}: row 1, paragraph 1, question 1")}


def test_annotators_are_chosen_by_name(write):
    path = write("a.json", squad({"answers": [answer("Paris", 10)] * 3}, {"answers": [answer("Paris", 10)]}))

    def names(annotators, labelled="needed"):
        questions = read(path, labelled, annotators=annotators)
        return [[one.annotator for one in row.annotations] for row in questions.rows], questions.report

    assert names("")[0] == [["1", "2", "3"], ["1"]]
    assert names(" 1, 3 ")[0] == [["1", "3"], ["1"]]
    assert names("-1,-3")[0] == [["2"]]
    assert names("-1,-3")[1].dropped["none of its annotators is kept"][0] == 1
    assert names("-1", "if there")[0] == [["2", "3"], []]
    assert "annotators 7: no question has them; there are 1, 2, 3" in names("1,7")[1].notes
    assert says(fault(path, annotators="7"), "none of 2 ... kept: 2 ... annotators 7")


def test_unpaired_surrogates_become_one_replacement_each_so_that_offsets_stay(write):
    context = "a\ud83d\ud83d b \udc00c"
    questions = read(write("a.json", squad({"answers": [answer("\udc00c", 6)]}, context=context)))
    assert questions.rows[0].context == "a\ufffd\ufffd b \ufffdc"
    assert texts(questions.rows[0]) == [("\ufffdc",)]
    assert sum(notes_of(questions).values()) == 2  # of the context and of the answer
    assert "U+FFFD" in str(questions.report)


def test_ids_may_be_numbers_and_questions_may_come_from_the_settings(write):
    path = write("a.json", squad({"id": 7, "question": None, "answers": []}, {"question": "", "answers": []}))
    asked = read(path, question="Which?").rows
    assert [(row.id, row.question) for row in asked] == [("7", "Which?"), ("q2", "Which?")]
    assert says(fault(path), "question 1: has no question")
    empty = read(write("b.json", squad({"question": "", "answers": []})))
    assert (empty.rows[0].question, notes_of(empty)) == ("", {"questions without a text": 1})
    twice = write("c.json", squad({"id": 1, "answers": []}, {"id": "1", "answers": []}))
    assert says(fault(twice), "question 2: the id '1' ... question 1")


FAULTS = [  # file, content, what the message says after its name
    ("none.json", "", ": no questions"),
    ("empty.json", '{"data": []}', ": no questions"),
    ("bare.json", '{"data": [{"paragraphs": []}]}', ": no questions"),
    ("cut.json", '{"data":\n [{"paragraphs":\n', ":2: not JSON ... column 17"),
    ("deep.json", "[" * 100_000, ": not JSON"),
    ("twice.json", '{"data": [],\n "data": []}', ": not JSON ... 'data' ... twice"),
    ("line.json", '{"id": "a", "context": "b"}\n{"id": \n', ":2: not JSON"),
    ("names.json", '{"version": "1.1",\n "rows": 3}', ": no list 'data' ... version, rows"),
    ("three.json", "3", ": no list 'data' (3)"),
    ("texts.json", '["a"]', ": row 1: 'a' is no object"),
    ("other.json", '[{"body": "a", "label": 1}]', ": row 1: has body, label ... squad, mul"),
    ("classes.json", '[{"text": "a", "label": 1}]', ": no text has a labelled span; set questions"),
    ("table.csv", "id,question\n1,a\n", ": .csv ... questions ... json lines"),
    ("table.txt", "id,question\n1,a\n", ":1: not JSON"),
    ("a.zip", b"PK\x03\x04", ": cannot be unpacked"),
    ("latin.json", b'[{"context": "caf\xe9"}]', ", byte 17 (line 1): 0xE9 ... encoding"),
    ("p.json", '[{"paragraphs": {}}]', ": row 1: paragraphs: {} is no list"),
    ("c.json", '[{"paragraphs": [{"qas": []}]}]', ": row 1, paragraph 1: context is missing"),
    ("qas.json", '[{"paragraphs": [{"context": ""}]}]', ": row 1, paragraph 1: qas is missing"),
    ("q.json", '[{"paragraphs": [{"context": "", "qas": [7]}]}]', ": row 1, paragraph 1, question 1: 7 is no object"),
]


@pytest.mark.parametrize(("name", "content", "pieces"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_fault_has_one_line(write, name, content, pieces):
    assert says(fault(write(name, content)), name + pieces)


def test_paths_and_settings_that_make_no_sense(write, tmp_path):
    path = write("train.json", squad({"answers": []}))
    assert says(fault(tmp_path / "trian.json"), "trian.json: no such file ... train.json")
    assert says(fault(tmp_path), ": a folder with train.json")
    assert says(fault(path, format="squat"), "format is 'squat'; ... auto, squad, mul")
    assert says(fault(path, annotators="1,-2"), "annotators '1,-2' ... not both")
    assert says(fault(path, "yes"), "labelled is 'yes'; ... needed, if there, no")


def articles(*sizes):
    """Rows of a file with articles of so many questions."""
    names = [(f"t{i}", f"{i}.{j}") for i, size in enumerate(sizes) for j in range(size)]
    rows = [
        {"title": title, "context": f"a {title}", "id": name, "question": "?", "answers": []} for title, name in names
    ]
    return json.dumps(rows)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_split_keeps_articles_whole(write, seed):
    questions = read(write("a.json", articles(3, 1, 2, 5, 1, 1, 4, 2)))
    train, validation = parts = split(questions, 0.25, seed)
    assert {row.group for row in train.rows}.isdisjoint(row.group for row in validation.rows)
    assert len({row.group for row in validation.rows}) == 2
    order = {row.id: i for i, row in enumerate(questions.rows)}
    for part in parts:
        assert [row.id for row in part.rows] == sorted((row.id for row in part.rows), key=order.__getitem__)
        assert (part.report.read, part.report.kept, part.report.dropped) == (19, len(part.rows), {})
        assert sum(part.report.elsewhere.values()) == 19 - len(part.rows)
    assert len(train.rows) + len(validation.rows) == 19
    assert split(questions, 0.25, seed) == parts


def test_other_seeds_split_otherwise_and_bad_shares_are_refused(write):
    questions = read(write("a.json", articles(*[1] * 20)))
    assert len({tuple(row.id for row in split(questions, 0.5, seed)[1].rows) for seed in range(5)}) == 5
    for share in (0, 1, -0.1, float("nan")):
        assert says(message_of(split, questions, share, 0), "must be above 0 and below 1")
    assert says(message_of(split, questions, 0.01, 0), "20 ... too few ... 0.01")
    one, two = (read(write("b.json", articles(*sizes))) for sizes in [(9,), (3, 3)])
    assert says(message_of(split, one, 0.9, 0), "1 articles or documents are too few")
    assert [len(part.rows) for part in split(two, 0.99, 0)] == [3, 3]


def test_articles_with_the_same_passage_stay_in_one_part(write):
    """Each passage stands in two articles, with other blanks; which part an article is in is a function of the seed."""
    rows = [
        {"title": f"t{i}{side}", "context": f"The {side * ' '}passage {i}", "id": f"{i}{side}"}
        | {"question": "?", "answers": []}
        for side in range(2)
        for i in range(20)
    ]  # fmt: skip
    questions = read(write("a.json", json.dumps(rows)))
    train, validation = split(questions, 0.2, 0)
    assert not set(passage_keys(train)) & set(passage_keys(validation))
    assert len(validation.rows) == 8
    assert any("share a passage" in note for note in train.report.notes)
    apart = split(questions, 0.2, 0, equal_apart=True)[1]
    order = np.random.default_rng(0).permutation(40)[:8]
    assert [row.group for row in apart.rows] == [rows[i]["title"] for i in sorted(order)]
    same = read(write("b.json", json.dumps([row | {"context": "a"} for row in rows])))
    assert len(split(same, 0.2, 0)[1].rows) == 8  # all share it
