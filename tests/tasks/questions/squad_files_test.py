"""SQuAD files: votes, positions, golds, faults in a question, and real files."""

import gzip
import json
from collections import Counter

import datasets
import pytest

from tasks.questions.parts import for_scoring, for_training, split
from tasks.questions.question_rows import Annotation, Gold
from tests.tasks.one_line import says
from tests.tasks.questions.read_questions import CONTEXT, answer, fault, notes_of, read, squad, texts


def test_each_answer_is_a_vote_and_equal_ones_are_several(write):
    given = [answer("in Paris", 7), answer("Paris", 10), answer("in Paris", 7)]
    (question,) = read(write("a.json", squad({"answers": given}))).rows
    assert question.annotations == (("1", ((7, 15),)), ("2", ((10, 15),)), ("3", ((7, 15),)))
    assert (question.id, question.question, question.context, question.group) == ("q1", "Where?", CONTEXT, "Cities")


@pytest.mark.parametrize("text", ["café", "🤗 in", "Paris,\r\n\r\nnot", "in  London", "𝒳!"])
def test_offsets_are_code_points_of_the_text_as_it_is(write, text):
    questions = read(write("a.json", squad({"answers": [answer(text, CONTEXT.index(text))]})))
    assert texts(questions.rows[0]) == [(text,)]
    assert not questions.report.notes


def test_a_question_without_an_answer_has_one_annotator_who_found_nothing(write):
    right = [{"answers": []}, {"answers": [], "is_impossible": True}, {"is_impossible": True}]
    odd = {"answers": [answer("Paris", 10)], "is_impossible": True}
    questions = read(write("a.json", squad(*right, odd)))
    assert [row.annotations for row in questions.rows] == [(Annotation("1", ()),)] * 4
    assert notes_of(questions) == {
        "is_impossible though there are answers: trained as without one, scored by the answers": 1
    }
    assert [row.golds for row in questions.rows] == [(Gold("1", ()),)] * 3 + [(Gold("1", ("Paris",)),)]
    assert for_training(questions).rows == questions.rows


def test_wrong_offsets_move_to_the_one_place_or_are_for_scores_alone(write):
    """London stands once; Paris twice; Rome never; a start below 0 must not count from the end."""
    moved = [answer("London", 5), answer("𝒳!", -2), answer("café", 9_999), {"text": "big"}]
    lost = [answer("Paris", 11), answer("Rome", 0), {"text": "Paris"}]
    blank = [answer("  ", 28), answer("", -1)]
    given = [{"answers": [*moved, *lost, *blank]}, {"answers": lost}, {"answers": [answer("Paris", 10)]}]
    path = write("a.json", squad(*given))
    questions = read(path)
    trained = for_training(questions)
    assert [row.id for row in trained.rows] == ["q1", "q3"]
    assert texts(trained.rows[0]) == [("London",), ("𝒳!",), ("café",), ("big",), ()]
    assert [one.annotator for one in trained.rows[0].annotations] == ["1", "2", "3", "4", "9"]
    twice, nowhere, moved_to = (
        "more than once in the passage",
        "not in the passage",
        "the one place of their text in the",
    )
    read_notes = {
        f"answers whose position is {moved_to} passage (not at answer_start)": 3,
        f"answers whose position is {moved_to} passage (no answer_start)": 1,
        f"answers without a position for training ({twice}, not at answer_start)": 2,
        f"answers without a position for training ({twice}, no answer_start)": 2,
        f"answers without a position for training ({nowhere})": 2,
        "answers without a position for training (blanks alone)": 1,
        "answers with the text '', each a vote for no answer": 1,
    }
    assert notes_of(trained) == read_notes
    reason = f"no position of an answer: {twice}, not at answer_start; {nowhere}; {twice}, no answer_start"
    place = f"{path}: row 1, paragraph 1, question 2"
    assert (trained.report.read, trained.report.kept, trained.report.dropped) == (3, 2, {reason: (1, place)})
    scored = for_scoring(questions)
    assert [[text for _, own in row.golds for text in own] for row in scored.rows] == [
        [one["text"] for one in row["answers"]] for row in given
    ]
    assert (scored.report.read, scored.report.kept, scored.report.dropped) == (3, 3, {})
    could_not = f"questions that are scored but could not be trained on ({reason})"
    assert notes_of(scored) == read_notes | {could_not: 1}
    kept = read(path, "if there")
    assert [len(row.annotations) for row in kept.rows] == [5, 0, 1]
    assert notes_of(kept)[f"{reason}, but kept"] == 1


def test_an_answer_without_a_position_is_not_taken_for_no_answer(write):
    """Beside votes for no answer: the question has an answer, of which training knows no place."""
    lost, nothing = answer("it 's big", 0), answer("", 0)
    given = [{"answers": [nothing, lost]}, {"answers": [lost, nothing, nothing]}, {"answers": [nothing]}]
    path = write("a.json", squad(*given, {"answers": [nothing, answer("Paris", 10)]}))
    assert [row.id for row in for_training(read(path)).rows] == ["q3", "q4"]
    assert [len(row.golds) for row in read(path).rows] == [2, 3, 1, 2]
    assert [row.id for row in for_training(read(path, annotators="1")).rows] == ["q1", "q3", "q4"]  # nobody says else


def test_a_list_of_articles_and_flat_rows_are_the_same_questions(write):
    """The official form; the list alone; rows as `datasets` writes them, in a list and an object a line."""
    given = [{"answers": [answer("Paris", 10), answer("London", 27)]}, {"answers": []}]
    official = json.loads(squad(*given))
    rows = []
    for row in official["data"][0]["paragraphs"][0]["qas"]:
        columns = {name: [one[name] for one in row["answers"]] for name in ("text", "answer_start")}
        rows.append({**row, "title": "Cities", "context": CONTEXT, "answers": columns})
    files = [
        write("a.json", json.dumps(official)),
        write("b.json.gz", gzip.compress(json.dumps(official, indent=1).encode("utf-8-sig"))),
        write("c.json", json.dumps(official["data"])),
        write("d.json", json.dumps(rows)),
        write("e.jsonl", "\r\n".join(map(json.dumps, rows))),
        write("f.json", "\n\n".join(map(json.dumps, rows))),
    ]
    found = [[row._replace(place="") for row in read(path).rows] for path in files]
    assert len(found[0]) == 2
    assert found.count(found[0]) == len(files)


QUESTION_FAULTS = [
    ({"id": None}, "id is missing"),
    ({"id": float("nan")}, "id: nan ... whole number"),
    ({"id": True}, "id: True ... whole number"),
    ({"answers": "yes"}, "answers: 'yes' is no list"),
    ({"answers": ["b"]}, "answer 1: 'b' is no object"),
    ({"answers": [answer("b", "2")]}, "answer 1: answer_start: '2' ... whole number"),
    ({"answers": {"text": ["b"], "answer_start": []}}, "answers: 1 of text but 0"),
    ({"is_impossible": "no"}, "is_impossible: 'no' ... true or false"),
]


@pytest.mark.parametrize(("question", "pieces"), QUESTION_FAULTS)
def test_a_fault_in_a_question_has_one_line(write, question, pieces):
    assert says(fault(write("a.json", squad(question))), f"a.json: row 1, paragraph 1, question 1: {pieces}")


def test_squad_dev(shared):
    questions = read(shared / "data/squad_v1.1/dev-v1.1.json.gz")
    assert (questions.report.read, questions.report.kept, questions.report.notes) == (10_570, 10_570, ())
    votes = Counter(len(row.annotations) for row in questions.rows)
    assert votes == {3: 8490, 5: 1147, 4: 759, 2: 136, 6: 35, 1: 3}
    distinct = Counter(len({one.spans for one in row.annotations}) for row in questions.rows)
    assert distinct == {1: 4809, 2: 4125, 3: 1427, 4: 169, 5: 40}
    train, validation = split(questions, 0.25, 0)
    assert [len({row.group for row in part.rows}) for part in (train, validation)] == [36, 12]


def test_half_of_squad_2(shared):
    questions = read(shared / "data/squad_v2_halfdev/dev-v2.0.json.gz")
    assert (questions.report.kept, questions.report.dropped, questions.report.notes) == (6078, {}, ())
    nothing = [row for row in questions.rows if row.annotations == (Annotation("1", ()),)]
    assert len(nothing) == 3168
    assert Counter(len(row.annotations) for row in questions.rows) == {1: 3168, 3: 2037, 5: 479, 4: 341, 2: 34, 6: 19}


@pytest.mark.parametrize("language", ["ar", "de", "en", "ru", "zh"])
def test_xquad(shared, language):
    path = shared / f"data/xquad/xquad.{language}.json.gz"
    questions = read(path)
    assert (questions.report.kept, questions.report.dropped, questions.report.notes) == (1190, {}, ())
    assert len({row.group for row in questions.rows}) == 48
    given = json.loads(gzip.decompress(path.read_bytes()))["data"]
    asked = [question for article in given for paragraph in article["paragraphs"] for question in paragraph["qas"]]
    assert [texts(row) for row in questions.rows] == [[(question["answers"][0]["text"],)] for question in asked]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """SQuAD as `datasets` has it, saved in each way."""
    folder, text = tmp_path_factory.mktemp("saved"), datasets.Value("string")
    names = dict.fromkeys(("id", "title", "context", "question"), text)
    start = datasets.Value("int32")
    asked = [[("in Paris", 7), ("big", CONTEXT.index("big"))], [], [("𝒳!", CONTEXT.index("𝒳"))]]
    rows = [
        {"id": f"q{i}", "title": "Cities", "context": CONTEXT, "question": "Where?",
         "answers": {"text": [one for one, _ in given], "answer_start": [start for _, start in given]}}
        for i, given in enumerate(asked)
    ]  # fmt: skip
    of_lists = {"text": datasets.List(text), "answer_start": datasets.List(start)}
    data = datasets.Dataset.from_list(rows, datasets.Features({**names, "answers": of_lists}))
    data.to_parquet(folder / "a.parquet")
    data.remove_columns("answers").to_parquet(folder / "new.parquet")
    data.save_to_disk(folder / "one")
    datasets.DatasetDict(train=data, validation=data).save_to_disk(folder / "two")
    listed = [row | {"answers": [answer(*pair) for pair in given]} for row, given in zip(rows, asked, strict=True)]
    of_objects = datasets.List({"text": text, "answer_start": start})
    of_objects = datasets.Features({**names, "answers": of_objects})
    datasets.Dataset.from_list(listed, of_objects).to_parquet(folder / "b.parquet")
    return folder


@pytest.mark.parametrize("name", ["a.parquet", "b.parquet", "one", "two/train"])
def test_rows_as_datasets_has_them(saved, name):
    questions = read(saved / name)
    assert [texts(row) for row in questions.rows] == [[("in Paris",), ("big",)], [()], [("𝒳!",)]]
    assert [row.golds for row in questions.rows][1:] == [(Gold("1", ()),), (Gold("1", ("𝒳!",)),)]
    assert [(row.id, row.group) for row in questions.rows] == [("q0", "Cities"), ("q1", "Cities"), ("q2", "Cities")]
    assert questions.rows[2].place == f"{saved / name}: row 3"
    assert not read(saved / name, "no").rows[0].annotations


def test_saved_rows_that_are_no_answers(saved, write):
    assert says(fault(saved / "two"), "two: holds the splits train, validation; name one")
    assert says(fault(saved / "new.parquet"), "none of 3 questions ... no annotation: 3")
    assert len(read(saved / "new.parquet", "no").rows) == 3
    assert says(fault(write("a.parquet", b"PAR1")), "a.parquet: cannot be read")
