import json

import numpy as np
import pytest

from bert.errors import InputError
from tasks.files.equal_texts import key_of
from tasks.files.examples import make_examples, split
from tasks.files.label_kinds import ColumnSettings, find_labels
from tasks.files.tables import read_table


@pytest.fixture
def table(write):
    """table([row, ...]) -> the table of a jsonl file with these rows."""

    def one(rows):
        return read_table(write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))

    return one


def column(values, name="label"):
    return [{"text": f"text {i}", name: value} for i, value in enumerate(values)]


def indices(examples):
    """Which rows of the table they are, from 0."""
    return [int(place.rpartition(":")[2]) - 1 for place in examples.places]


def examples_of(table, labelled="needed", **settings):
    columns = ColumnSettings(**{"text": "text", "label": "label", **settings})
    kind, labels = find_labels(table, columns)
    return make_examples(table, columns, kind, labels, labelled=labelled)


@pytest.mark.parametrize(
    ("values", "kind", "labels"),
    [
        (["b", "a", " a "], "class", ("a", "b")),
        (["10", "9", "-1"], "class", ("-1", "9", "10")),
        ([1.0, 2.0, 10.0, 2], "class", ("1", "2", "10")),
        (["1.0", "2.0", "2"], "class", ("1", "2")),
        (["01", "1"], "class", ("01", "1")),
        ([True, False], "class", ("False", "True")),
        (["3.5", "4"], "number", ()),
        ([0.25, 1], "number", ()),
        ([["a"], ["b", "a"], []], "classes", ("a", "b")),
        (['["a"]', '["b", "a"]'], "classes", ("a", "b")),
        (["a,b", "c"], "class", ("a,b", "c")),
        ([{"x": 0.5, "y": 0.5}, {"x": 1}], "class", ("x", "y")),
    ],
)
def test_what_kind_of_labels_there_are(table, values, kind, labels):
    assert find_labels(table(column(values)), ColumnSettings("text", "label")) == (kind, labels)


def test_numbers_beside_names_are_names_on_request(table):
    rows = table(column(["1", "10", "2", "none"]))
    assert find_labels(rows, ColumnSettings("text", "label", kind="class"))[1] == ("1", "2", "10", "none")


def test_targets_do_not_depend_on_the_order_of_the_rows(table):
    rows = column(["no", "yes", "yes"])
    one, other = examples_of(table(rows)), examples_of(table(rows[::-1]))
    np.testing.assert_array_equal(one.targets, [[1, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(one.targets, other.targets[::-1])
    assert one.labels == other.labels == ("no", "yes")
    assert one.targets.dtype == np.float32


def test_known_labels_are_matched_whatever_their_case_and_told(table):
    settings = ColumnSettings("text", "label")
    made = make_examples(table(column(["YES", "no", "yes "])), settings, "class", ("yes", "no", "No"))
    np.testing.assert_array_equal(made.targets, [[1, 0, 0], [0, 1, 0], [1, 0, 0]])
    assert any("YES as yes" in note for note in made.report.notes)
    made = make_examples(table(column([1, "2", "1.0"])), settings, "class", ("1.0", "2.0"))
    np.testing.assert_array_equal(made.targets, [[1, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize(
    "cell",
    ["1,0,0,?,1", "1,0,0,1,", [1, "0", None, 0, 1], "[1, 0, 0, 1]", {"A": 1, "B": "0", "C": 0, "D": "1"}, "0,0,1,1"],
)
def test_votes_become_shares_of_those_who_voted_in_any_order(table, cell):
    made = examples_of(table(column([cell, "0,1,1,1"])), votes=True)
    np.testing.assert_allclose(made.targets, [[0.5, 0.5], [0.25, 0.75]])
    assert (made.kind, made.labels) == ("class", ("0", "1"))


def test_an_annotator_with_two_choices_gives_half_to_each(table):
    made = examples_of(table(column([{"A": "x", "B": "x,y"}, {"A": "y"}])), votes=True)
    np.testing.assert_allclose(made.targets, [[0.75, 0.25], [0, 1]])


def test_annotators_numbers_give_their_mean(table):
    made = examples_of(table(column(["1,2", "4", "?"])), votes=True, kind="number")
    np.testing.assert_allclose(made.targets, [[1.5], [4]])
    assert made.report.dropped == {"no label": (1, made.report.source + ":3")}


def test_a_column_a_class(table):
    """Probabilities as they are, also inside of objects; numbers of votes scaled; 0 and 1 for several labels."""
    rows = table([{"text": "a", "p": {"0": 0.25, "1": 0.75}, "n": 3, "y": 1, "f": True, "g": "0"}])
    made = examples_of(rows, label=("p.0", "p.1"))
    assert (made.labels, made.targets.tolist()) == (("0", "1"), [[0.25, 0.75]])
    made = examples_of(rows, label=("y", "n"), votes=True)
    assert (made.labels, made.targets.tolist()) == (("y", "n"), [[0.25, 0.75]])
    assert examples_of(rows, label=("y", "n"), normalize=True).targets.tolist() == [[0.25, 0.75]]
    made = examples_of(rows, label=("f", "g", "y"), kind="classes")
    assert (made.kind, made.targets.tolist()) == ("classes", [[1, 0, 1]])


def test_rounded_thirds_are_shares(table):
    made = examples_of(table([{"text": "a", "p": 0.333, "q": 0.333, "r": 0.333}]), label=("p", "q", "r"))
    np.testing.assert_allclose(made.targets, [[1 / 3] * 3], rtol=1e-6)


def test_sets_of_labels(table):
    made = examples_of(table(column(["a,c", "", "b", None])), kind="classes")
    np.testing.assert_array_equal(made.targets, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert made.report.dropped["no label"][0] == 1
    made = examples_of(table(column(["a|c", "c"])), kind="classes", separator="|")
    np.testing.assert_array_equal(made.targets, [[1, 1], [0, 1]])


def test_single_labels_given_as_sets_are_told(table):
    assert any(
        "exactly one label" in note for note in examples_of(table(column(["a", "b"])), kind="classes").report.notes
    )


def test_labels_that_look_like_sets_are_told(table):
    assert any("is one label" in note for note in examples_of(table(column(["a", "b", "a,b"]))).report.notes)


def test_rows_without_text_or_label_are_dropped_in_training_and_counted(table):
    rows = table(
        [
            {"text": "a", "label": "x"},
            {"text": " \t", "label": "x"},
            {"text": "c", "label": " "},
            {"label": "y"},
            {"text": "e", "label": "y"},
        ]
    )
    made = examples_of(rows)
    assert indices(made) == [0, 4]
    assert made.texts == [("a",), ("e",)]
    assert [place[-2:] for place in made.places] == [":1", ":5"]
    assert made.rows == [rows.rows[0], rows.rows[4]]
    assert made.report.read == made.report.kept + sum(count for count, _ in made.report.dropped.values())
    path = rows.path
    assert (
        str(made.report)
        == f"{path}: 5 rows read, 2 kept; dropped 2: no text (first {path}:2); dropped 1: no label (first {path}:3)"
    )


def test_every_row_is_kept_for_prediction(table):
    rows = table([{"text": "a", "label": "x"}, {"text": "", "label": None}, {"text": "c", "label": "y"}])
    settings = ColumnSettings("text", "label")
    made = make_examples(rows, settings, "class", ("x", "y"), labelled="if there")
    assert (indices(made), made.targets) == ([0, 1, 2], None)
    assert any("1 rows have no text and are kept" in note for note in made.report.notes)
    assert any("1 rows have no label and are kept" in note for note in made.report.notes)
    unlabelled = make_examples(rows, ColumnSettings("text", "label"), "class", ("other",), labelled="no")
    assert unlabelled.targets is None


@pytest.mark.parametrize("value", [None, -1, "-1"])
def test_no_labels_at_all_is_no_fault_of_prediction(table, value):
    """A column of nothing or of -1, or none, has no labels: `predict` goes on, what needs them does not."""
    settings = ColumnSettings("text", "label")
    for rows in (table(column([value] * 3)), table(column([1, 2, 3], "other"))):
        made = make_examples(rows, settings, "class", ("0", "1"), labelled="if there")
        assert (len(indices(made)), made.targets) == (3, None)
        with pytest.raises(InputError, match=r"no labels|no column"):
            make_examples(rows, settings, "class", ("0", "1"))


def test_minus_one_is_a_label_where_it_is_known(table):
    made = examples_of(table(column([-1, 0, 1, -1])))
    assert made.labels == ("-1", "0", "1")
    only = make_examples(table(column([-1, -1])), ColumnSettings("text", "label"), "class", made.labels)
    np.testing.assert_array_equal(only.targets, [[1, 0, 0], [1, 0, 0]])


def test_of_pairs_one_text_may_be_empty(table):
    rows = table([{"a": "x", "b": "", "label": 0}, {"a": "", "b": " ", "label": 1}, {"a": "y", "b": "z", "label": 1}])
    made = examples_of(rows, text=("a", "b"))
    assert made.texts == [("x", ""), ("y", "z")]
    assert any("1 pairs have one empty text" in note for note in made.report.notes)


def test_unpaired_surrogates_become_replacement_characters(write):
    """Broken escapes in JSON would stop the tokenizer; two that form a pair are one character."""
    path = write("a.jsonl", '{"text": "a\\ud83d", "label": 0}\n{"text": "\\ud83d\\ude00", "label": 1}\n')
    made = examples_of(read_table(path))
    assert made.texts == [("a\ufffd",), ("\U0001f600",)]
    assert any("1 texts held unpaired surrogates" in note for note in made.report.notes)


def test_the_file_says_the_order_of_labels(table):
    rows = table(column(["a", "b"]))._replace(names={"label": ("z", "b", "a")})
    assert find_labels(rows, ColumnSettings("text", "label")) == ("class", ("z", "b", "a"))


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_a_split_is_by_class_and_a_function_of_seed_and_share(table, share):
    made = examples_of(table(column(["a"] * 50 + ["b"] * 30 + ["c"] * 19 + ["d"])))
    train, validation = split(made, share, seed=3)
    assert sorted(indices(train) + indices(validation)) == indices(made)
    assert indices(train) == sorted(indices(train))
    assert abs(len(indices(validation)) - 100 * share) <= 1
    assert np.abs(validation.targets.sum(0) - made.targets.sum(0) * share).max() <= 1
    assert train.targets.sum(0).min() >= 1
    again = split(made, share, seed=3)
    assert [indices(part) for part in again] == [indices(train), indices(validation)]
    assert indices(split(made, share, seed=4)[1]) != indices(validation)
    for part in (train, validation):
        assert part.texts == [made.texts[i] for i in indices(part)]
        np.testing.assert_array_equal(part.targets, made.targets[indices(part)])
        assert part.report.kept == len(part.texts) == 100 - sum(part.report.elsewhere.values())


def test_rows_of_the_other_part_are_told_and_not_called_dropped(table):
    made = examples_of(table(column([*["a", "b"] * 10, None])))
    train, validation = split(made, 0.1, seed=7)
    begin, end = f"{made.report.source}: 21 rows read, ", f"; dropped 1: no label (first {made.report.source}:21)"
    off = "split off for validation (share {}, seed 7)"
    assert str(train.report) == f"{begin}18 kept, 2 {off.format(0.1)}{end}"
    assert str(validation.report) == f"{begin}2 kept, 18 left in the training part (share 0.9, seed 7){end}"
    # Parts can be split on, and no row is lost on the way.
    assert split(train, 0.5, seed=7)[0].report.elsewhere == {off.format(0.1): 2, off.format(0.5): 9}
    assert split(train, 0.1, seed=7)[0].report.elsewhere == {off.format(0.1): 4}


def test_numbers_are_split_at_random(table):
    made = examples_of(table(column([i / 7 for i in range(40)])))
    train, validation = split(made, 0.25, seed=0)
    assert (len(indices(train)), len(indices(validation))) == (30, 10)


def earlier_split(class_N, share, seed):
    """bool [N]: the validation part of a file without equal texts, as runs were begun with that go on now."""
    rng = np.random.default_rng(seed)
    members = [rng.permutation(np.flatnonzero(class_N == c)) for c in np.unique(class_N)]
    exact = np.array([len(rows) * share for rows in members])
    take = np.floor(exact).astype(int)
    for c in np.argsort(take - exact, kind="stable")[: max(round(len(class_N) * share) - take.sum(), 0)]:
        take[c] += 1
    chosen = [rows[: min(n, len(rows) - 1)] for rows, n in zip(members, take, strict=True)]
    return np.isin(np.arange(len(class_N)), np.concatenate(chosen))


@pytest.mark.parametrize("seed", range(8))
def test_without_equal_texts_and_on_request_a_split_is_as_it_always_was(table, seed):
    rng = np.random.default_rng(seed)
    class_N = rng.choice(5, rng.integers(30, 200), p=[0.5, 0.3, 0.15, 0.04, 0.01])
    made = examples_of(table(column([f"c{c}" for c in class_N])))
    doubled = examples_of(table(column([f"c{c}" for c in class_N]) * 2))
    for share in (0.03, 0.1, 0.5, 0.9):
        wanted = np.flatnonzero(earlier_split(class_N, share, seed)).tolist()
        assert indices(split(made, share, seed)[1]) == wanted
        wanted = np.flatnonzero(earlier_split(np.tile(class_N, 2), share, seed)).tolist()
        assert indices(split(doubled, share, seed, equal_apart=True)[1]) == wanted


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("pair", [False, True])
def test_equal_texts_stay_in_one_part_and_classes_keep_their_shares(table, seed, pair):
    """Each text once to four times, with other blanks and letters; now and then with another label."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(300):
        label = str(rng.choice(["a", "b", "c"], p=[0.6, 0.3, 0.1]))
        for copy in range(rng.integers(1, 5)):
            texts = ["Ab  text", f"{i}"][:: -1 if copy % 2 else 1] if pair else [f"Ab  text{i}"]
            texts = [text.upper() if copy % 2 else f" {text}" for text in texts]
            rows.append({"text": texts[0], "other": texts[-1], "label": "b" if rng.random() < 0.02 else label})
    made = examples_of(table(rows), text=("text", "other") if pair else "text")
    train, validation = parts = split(made, 0.2, seed)
    seen = [{key_of(texts) for texts in part.texts} for part in parts]
    assert not seen[0] & seen[1]
    assert sorted(indices(train) + indices(validation)) == indices(made)
    assert abs(len(indices(validation)) - 0.2 * len(rows)) <= 2
    assert np.abs(validation.targets.sum(0) - 0.2 * made.targets.sum(0)).max() <= 6  # but for the other labels: 3
    assert any("stay in one part" in note for note in train.report.notes)
    assert not any("stay in one part" in note for note in validation.report.notes)
    assert indices(split(made, 0.2, seed)[1]) == indices(validation)


def test_a_file_whose_every_row_stands_twice(table):
    made = examples_of(table(column(["a"] * 60 + ["b"] * 40) * 2))
    train, validation = split(made, 0.1, seed=0)
    assert not set(train.texts) & set(validation.texts)
    np.testing.assert_array_equal(validation.targets.sum(0), [12, 8])


def test_a_class_that_equal_texts_keep_out_of_the_validation_part_is_told(table):
    rows = column(["a"] * 40) + [{"text": "same", "label": "b"}] * 20
    train, validation = split(examples_of(table(rows)), 0.1, seed=0)
    assert validation.targets.sum(0).tolist() == [4, 0]
    assert any("none of the 20 rows of b " in note for note in train.report.notes)
    every = [{"text": "same", "label": label} for label in "ab" * 10]
    train, validation = split(examples_of(table(every)), 0.1, seed=0)  # nothing else is left to do; the job counts them
    assert validation.texts == [("same",), ("same",)]


def test_groups_leave_each_class_in_training_and_come_as_near_to_the_share_as_they_can(table):
    twice = [{"text": f"t{i // 2}", "label": "b"} for i in range(10)]
    five = [{"text": f"f{i // 5}", "label": "c"} for i in range(10)]
    made = examples_of(table(column(["a"] * 80) + twice + five))
    for seed in range(5):
        _, validation = split(made, 0.1, seed)
        assert validation.targets.sum(0).tolist() == [8, 2, 0]  # one b is wanted, and one c: a pair, but not five
    only = examples_of(table([*column(["a"] * 6), {"text": "text 0", "label": "b"}]))
    for seed in range(10):
        assert split(only, 0.5, seed)[0].targets.sum(0)[1] == 1
