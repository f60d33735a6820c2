"""Label cells with lists and objects: read as what they say, or refused; never a class name."""

import json
import re

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tasks.files.examples import make_examples
from tasks.files.label_kinds import ColumnSettings, find_labels
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says


@pytest.fixture
def read(write):
    """read(cells, **settings) -> (kind, labels, targets, notes) of a label column; model: its kind and labels."""

    def one(cells, model=None, **settings):
        rows = [{"text": f"text {i}", "label": value} for i, value in enumerate(cells)]
        table = read_table(write("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
        columns = ColumnSettings("text", "label", **settings)
        made = make_examples(table, columns, *(model or find_labels(table, columns)))
        return made.kind, made.labels, made.targets, " ".join(made.report.notes)

    return one


def printed(row):
    """A list of numbers in the forms that a cell may have it in."""
    yield row
    yield json.dumps(row)
    yield str(np.array(row))
    yield repr(np.array(row))
    yield str(tuple(row))
    yield f"c({', '.join(map(str, row))})"
    yield "{" + ",".join(map(str, row)) + "}"


PLACES = [[1, 0, 1], [0, 0, 1], [0, 0, 0]]
SHARES = [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize("form", range(7))
def test_lists_of_numbers_are_labels_by_place(read, form):
    cells = [list(printed(row))[form] for row in PLACES]
    kind, labels, targets, notes = read(cells)
    assert (kind, labels) == ("classes", ("0", "1", "2"))
    np.testing.assert_array_equal(targets, PLACES)
    assert says(notes, "by place")
    np.testing.assert_array_equal(read(cells[:1], (kind, labels))[2], PLACES[:1])
    shares = [list(printed(row))[form] for row in SHARES]
    kind, labels, targets, notes = read(shares)
    assert (kind, labels) == ("class", ("0", "1", "2"))
    np.testing.assert_array_equal(targets, SHARES)
    assert says(notes, "by place")
    np.testing.assert_array_equal(read(shares[1:], (kind, labels))[2], SHARES[1:])


def test_one_of_several_places_may_be_read_as_the_class(read):
    """As the notice says: kind class."""
    rows = [[1.0, 0.0], [0.0, 1.0]]
    assert read(rows)[0] == "classes"
    kind, labels, targets, _ = read(rows, kind="class")
    assert (kind, labels, targets.tolist()) == ("class", ("0", "1"), rows)
    assert read([[True, False], [False, True]])[2].tolist() == rows


@pytest.mark.parametrize("mark", [";", "|", "/"])
def test_sets_with_another_separator_are_told(read, mark):
    """Names in lists, and those whose parts are no labels, are what they say."""
    cells = [f"a{mark}b", "b", "", "c"]
    assert says(read(cells, kind="classes")[3], f"'a{mark}b' ... separator")
    assert "separator" not in read(cells, kind="classes", separator=mark)[3]
    for others in ([f"a{mark}b", "c", ""], [[f"a{mark}b", "b"], ["c"], []]):
        assert "separator" not in read(others, kind="classes")[3]


def test_numbers_with_a_separator_are_places_where_kind_is_classes(read):
    cells = ["1,0,1", "0,0,1", "0,0,0"]
    assert read(cells, kind="classes")[2].tolist() == PLACES
    assert says(message_of(read, cells), "a.jsonl:1: label: '1,0,1' ... votes")
    assert read(cells, votes=True)[2].tolist()[2] == [1, 0]
    spaces = [cell.replace(",", " ") for cell in cells]
    assert says(message_of(lambda: read(spaces, kind="classes")), "separator")
    assert read(spaces, kind="classes", separator=" ")[2].tolist() == PLACES
    assert says(message_of(lambda: read(spaces, votes=True)), "separator")


def test_lists_of_numbers_may_name_labels(read):
    kind, labels, targets, _ = read([[0, 2], [1], []])
    assert (kind, labels) == ("classes", ("0", "1", "2"))
    np.testing.assert_array_equal(targets, [[1, 0, 1], [0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(read([[2, 0]], (kind, labels))[2], [[1, 0, 1]])


@pytest.mark.parametrize(
    ("cells", "settings"),
    [
        ([[1, 0, 1], [1, 0]], {}),
        ([[1, 0, 1], []], {}),
        ([[0.5], [0.25]], {}),
        ([[0.5, 0.5], [0.1, 0.9]], {"kind": "classes"}),
        ([[3, 2], [5, 0], [4, 1]], {}),
        ([[2, 2], [3, 1]], {}),
        ([[0.9, 0.2], [0.1, 0.9]], {}),
        ([[[1, 0]], [[0, 1]]], {}),
        ([[1, None], [0, 1]], {"kind": "class"}),
        ([[None, 1.0], [0.0, 1.0]], {}),
        ([[1, 0], []], {}),
        ([[1, 0], "other"], {}),
        ([[float("nan"), 1.0], [0.0, 1.0]], {}),
        ([{"a": [1]}, {"a": [0]}], {}),
        ([3.5, [2.0]], {"kind": "number"}),
    ],
)
def test_other_lists_of_numbers_are_refused(read, cells, settings):
    assert re.match(r".*a\.jsonl:[12]: label: .*(; | set )", message_of(lambda: read(cells, **settings)))


def test_counts_by_place_are_shares_on_request(read):
    kind, labels, targets, _ = read([[3, 1], [4, 0], [0, 4]], kind="class", normalize=True)
    assert (kind, labels, targets.tolist()) == ("class", ("0", "1"), [[0.75, 0.25], [1, 0], [0, 1]])


def test_lists_that_do_not_fit_the_model_are_refused(read):
    for model in [("classes", ("0", "1", "2")), ("class", ("0", "1", "2")), ("class", ("no", "yes"))]:
        assert says(message_of(read, [[1, 0], [0, 1]], model), "by place")


def test_a_name_in_brackets_needs_a_kind(read):
    cells = ["[other]", "[news]", "[other]"]
    assert says(message_of(read, cells), ":1: label: '[other]' ... kind")
    assert read(cells, kind="class")[1] == ("[news]", "[other]")
    assert read(cells, kind="classes")[1] == ("news", "other")
    assert read([*cells, "[news, other]"])[:2] == ("classes", ("news", "other"))
    assert read(["(other)", "(news)"])[1] == ("(news)", "(other)")


def test_intervals_are_names(read):
    """As pandas.cut and R's cut write them; the lowest may be closed."""
    for cells in (["(0, 5]", "(5, 10]"], ["[0,5]", "(5,10]"], ["[18.0, 25.0)", "[25.0, inf)"]):
        for kind in ("auto", "class"):
            assert read(cells, kind=kind)[:2] == ("class", tuple(sorted(cells)))
        assert read(cells[:1], ("class", tuple(cells)))[2].tolist() == [[1, 0]]


def test_lists_of_other_languages_are_refused(read):
    cells = ["Seq(1, 0)", "Seq(0, 1)"]
    for settings in ({}, {"kind": "classes"}, {"votes": True}):
        assert says(message_of(lambda s=settings: read(cells, **s)), ":1: label: 'Seq ... JSON")
    assert read(cells, kind="class")[1] == ("Seq(0, 1)", "Seq(1, 0)")


def test_numbers_with_commas_in_lists_are_refused(read):
    cells = [["0,25", "0,75"], ["0,5", "0,5"]]
    assert says(message_of(read, cells), ":1: label: '0,25' ... decimal point")
    assert read(cells, kind="classes")[1] == ("0,25", "0,5", "0,75")


@pytest.mark.parametrize("form", [lambda value: value, json.dumps, repr])
def test_objects_are_shares_or_several_labels_by_name(read, form):
    shares = [{"x": 0.5, "y": 0.5}, {"x": 1}]
    kind, labels, targets, notes = read([form(value) for value in shares])
    assert (kind, labels, targets.tolist()) == ("class", ("x", "y"), [[0.5, 0.5], [1, 0]])
    assert says(notes, "x, y")
    several = [form(value) for value in [{"x": 1, "y": 1}, {"x": 0, "y": 1}]]
    assert says(message_of(read, several), "classes ... votes ... normalize")
    kind, labels, targets, _ = read(several, kind="classes")
    assert (kind, labels, targets.tolist()) == ("classes", ("x", "y"), [[1, 1], [0, 1]])
    assert read(several, normalize=True)[2].tolist() == [[0.5, 0.5], [0, 1]]


VOTES = [
    [{"Ann1": "1", "Ann2": "0"}, {"Ann1": "0", "Ann2": "1"}],
    [{"Ann1": 1, "Ann2": 0}, {"Ann1": 0, "Ann2": 1}],
    [{"eva": 1, "tom": 0}, {"eva": 0, "kim": 1}],
    [{"eva": "1", "tom": "0"}, {"eva": "0", "tom": "1"}],
    ['{"worker 7": 1, "worker 9": 0}', '{"worker 7": 0, "worker 9": 1}'],
    [[{"annotator": "eva", "label": "1"}, {"annotator": "tom", "label": 0}]] * 2,
    [{"eva": {"label": "1"}, "tom": {"label": "0"}}] * 2,
]


@pytest.mark.parametrize("cells", VOTES)
def test_annotators_never_become_classes(read, cells):
    assert says(message_of(read, cells), "a.jsonl:1: label: ... votes to true")
    kind, labels, targets, _ = read(cells, votes=True)
    assert (kind, labels, targets.tolist()) == ("class", ("0", "1"), [[0.5, 0.5]] * 2)
    assert says(message_of(read, cells, ("class", ("0", "1"))), "votes")


def test_the_way_out_of_objects_works(read, write):
    """An inner column where there is one; else a column for each."""
    cells = [{"x": "1", "y": "0"}, {"x": "0", "y": "1"}]
    assert says(message_of(read, cells), "label.x, label.y")
    table = read_table(write("b.jsonl", "".join(json.dumps({"text": "a", "label": cell}) + "\n" for cell in cells)))
    columns = ColumnSettings("text", ("label.x", "label.y"))
    assert make_examples(table, columns, *find_labels(table, columns)).targets.tolist() == [[1, 0], [0, 1]]
    assert says(message_of(read, list(map(json.dumps, cells))), "a column for each")
    assert says(message_of(read, [{"x": 0.5, "z": 0.5}], ("class", ("x", "y"))), "unknown label 'z'")


def test_sums_of_objects_are_told_with_votes_as_a_way_out(read):
    cells = [{"eva": 3, "tom": 5}, {"eva": 1, "tom": 2}]
    assert says(message_of(read, cells), "sum to 8 ... votes to true ... normalize")
    assert read(cells, votes=True, kind="number")[2].tolist() == [[4], [1.5]]
    assert says(message_of(lambda: read(cells, kind="number")), "votes to true")


def test_votes_the_other_way_round_are_refused(read):
    """Labels with their annotators, or with the number of their votes."""
    assert says(message_of(lambda: read([{"yes": ["Ann1", "Ann2"], "no": ["Ann3"]}], votes=True)), "annotators")
    counts = [{"yes": 3, "no": 2}, {"yes": 1, "no": 4}, {"yes": 5, "no": 0}]
    assert says(message_of(lambda: read(counts, votes=True)), "normalize to true")
    assert read(counts, normalize=True)[2].tolist()[2] == [0, 1]


def test_lists_and_objects_without_brackets_are_refused(read):
    for cells in (
        ["x: 0.5, y: 0.5", "x: 1"],
        ["1:0.5 2:0.5", "1:1"],
        ["x=1;y=0", "y=1"],
        ['"x"=>"1", "y"=>"0"', "y"],
        ["x=1&y=0", "y=1"],
        ["- a\n- b", "- a"],
    ):
        assert says(message_of(read, cells), "a.jsonl:1: label: ... kind to class")
        assert len(read(cells, kind="class")[1]) == 2
    assert read(["Mark 1:12", "10:30"])[0] == "class"
    cells = ["yes,no,yes", "no,no,yes", "no,yes,no"]
    assert says(message_of(read, cells), "votes to true")
    assert read(cells, votes=True)[1] == ("no", "yes")


def test_decimal_commas_are_no_votes(read):
    for settings in ({"kind": "number"}, {}):
        assert says(message_of(lambda s=settings: read(["0,25", "3,5", "4"], votes=True, **s)), ":1: ... decimal comma")
    assert read([[0, 25], [3, 5]], votes=True, kind="number")[2].tolist() == [[12.5], [4]]
    assert read(["1,2", "4"], votes=True, kind="number")[2].tolist() == [[1.5], [4]]


def test_objects_with_a_label_inside(read):
    cells = [{"label": "x", "score": 0.9}, {"label": "y", "score": 0.8}]
    assert says(message_of(read, cells), "label.label")
    for wrong in ([[cell] for cell in cells], [[["eva", "x"], ["tom", "y"]]] * 2):
        assert says(message_of(lambda w=wrong: read(w, votes=True)), "annotator: label")


def test_columns_of_annotators_are_no_classes(write):
    table = read_table(write("a.csv", "text,ann1,ann2\na,1,0\nb,0,1\n"))
    message = message_of(lambda: find_labels(table, ColumnSettings("text", ("ann1", "ann2"))))
    assert says(message, "ann1, ann2 ... votes to true")


def test_columns_with_decimal_commas(write):
    table = read_table(write("a.csv", "text;p;q;n\na;0,75;0,25;0,5\nb;1;0;4,75\nc;0,5;0,5;1,250\n"))
    for settings in ({"label": ("p", "q")}, {"label": ("p", "q"), "votes": True}):
        columns = ColumnSettings("text", **settings)
        made = make_examples(table, columns, *find_labels(table, columns))
        np.testing.assert_array_equal(made.targets, [[0.75, 0.25], [1, 0], [0.5, 0.5]])
    assert says(message_of(find_labels, table, ColumnSettings("text", "n")), "a.csv:2: n: '0,5' ... kind to number")
    columns = ColumnSettings("text", "n", kind="number")
    made = make_examples(table, columns, *find_labels(table, columns))
    np.testing.assert_array_equal(made.targets, [[0.5], [4.75], [1.25]])
    votes = read_table(write("b.csv", 'text,n\na,3;4\nb,"2,5;3,5"\n'))
    columns = ColumnSettings("text", "n", kind="number", votes=True, separator=";")
    np.testing.assert_array_equal(make_examples(votes, columns, *find_labels(votes, columns)).targets, [[3.5], [3]])


def test_arrow_fills_the_names_that_an_object_leaves_out(tmp_path):
    rows = [{"text": "a", "label": {"x": 1.0}}, {"text": "b", "label": {"x": 0.5, "y": 0.5}}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    kind = pyarrow.map_(pyarrow.string(), pyarrow.float64())
    labels = pyarrow.array([list(row["label"].items()) for row in rows], kind)  # type: ignore[attr-defined]
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": labels}), tmp_path / "map.parquet")
    for path in ("a.parquet", "map.parquet"):
        table, columns = read_table(str(tmp_path / path)), ColumnSettings("text", "label")
        made = make_examples(table, columns, *find_labels(table, columns))
        assert (made.labels, made.targets.tolist()) == (("x", "y"), [[1, 0], [0.5, 0.5]])


def test_annotators_numbers_may_have_one_sum_in_two_kinds_of_rows(read):
    """Of more kinds of rows they would be numbers of votes."""
    cells = [{"x": 1, "y": 3}, {"x": 3, "y": 1}]
    assert read(cells, votes=True)[1] == ("1", "3")
    assert says(message_of(lambda: read([*cells, {"x": 2, "y": 2}], votes=True)), "numbers of votes")


def test_objects_without_a_part_are_the_empty_set(read):
    """Also where no other row has a label."""
    assert read([{"x": None}], ("classes", ("x", "y")), kind="classes")[2].tolist() == [[0, 0]]
