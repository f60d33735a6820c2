"""People's real tables, end to end: rows and labels as the README beside the data counts them."""

import zipfile

import numpy as np
import pytest

from tasks.files.examples import make_examples
from tasks.files.label_kinds import ColumnSettings, find_labels
from tasks.files.records import TableSettings
from tasks.files.tables import read_table


def examples_of(path, wanted, **settings):
    table = read_table(str(path), TableSettings(**settings))
    return make_examples(table, wanted, *find_labels(table, wanted))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("SICK_train.txt.gz", (665, 1299, 2536)),
        ("SICK_trial.txt", (74, 144, 282)),
        ("SICK_test_annotated.txt.gz", (720, 1414, 2793)),
    ],
)
def test_sick_has_labels_and_numbers_on_the_same_pairs(shared, name, counts):
    path, text = shared / "data/sick2014" / name, ("sentence_A", "sentence_B")
    made = examples_of(path, ColumnSettings(text, "entailment_judgment"))
    assert made.labels == ("CONTRADICTION", "ENTAILMENT", "NEUTRAL")
    assert tuple(made.targets.sum(0)) == counts
    score = examples_of(path, ColumnSettings(text, "relatedness_score"))
    assert (score.kind, score.texts) == ("number", made.texts)
    assert 1 <= score.targets.min() < score.targets.max() <= 5


@pytest.mark.parametrize(("part", "rows", "fine"), [("train", 5452, 50), ("test", 500, 42)])
def test_trec(shared, tmp_path, part, rows, fine):
    """6 coarse and 50 fine classes (42 of them in the test); the byte that is not UTF-8 is read as Latin-1."""
    with zipfile.ZipFile(shared / "data/trec_question_classes/qc.zip") as archive:
        path = archive.extract(f"qc/{part}.txt", tmp_path)
    columns = ("coarse", "fine", "text")
    coarse = examples_of(path, ColumnSettings("text", "coarse"), columns=columns, delimiter="[: ]", encoding="latin-1")
    assert coarse.report.kept == rows
    assert coarse.labels == ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
    full = examples_of(
        path, ColumnSettings("text", "label"), columns=("label", "text"), delimiter="space", encoding="latin-1"
    )
    assert (full.report.kept, len(full.labels)) == (rows, fine)
    assert full.texts == coarse.texts


@pytest.mark.parametrize(("part", "rows"), [("train", 6592), ("dev", 1104), ("test", 3057)])
def test_md_agreement_has_one_target_in_three_forms(shared, part, rows):
    """Votes, a share a column, and an object of shares: 5 annotators, the same soft labels."""
    path = shared / f"data/lewidi/MD-Agreement_dataset/MD-Agreement_{part}.json.gz"
    votes = examples_of(path, ColumnSettings("text", "annotations", votes=True))
    shares = examples_of(path, ColumnSettings("text", ("soft_label.0", "soft_label.1")))
    inner = examples_of(path, ColumnSettings("text", "soft_label"))
    assert votes.report.kept == rows
    assert votes.labels == shares.labels == inner.labels == ("0", "1")
    np.testing.assert_allclose(votes.targets * 5, np.round(votes.targets * 5), atol=1e-6)
    np.testing.assert_allclose(votes.targets, shares.targets, atol=1e-6)
    np.testing.assert_allclose(votes.targets, inner.targets, atol=1e-6)
    assert votes.rows[0]["id"] == "1"


def test_varierr_has_pairs_inside_of_objects_and_several_labels_a_vote(shared):
    columns = ColumnSettings(("text.context", "text.statement"), "annotations", votes=True)
    made = examples_of(shared / "data/lewidi/VariErrNLI/VariErrNLI_dev.json", columns)
    assert made.report.kept == 50
    assert made.labels == ("contradiction", "entailment", "neutral")
    np.testing.assert_allclose(made.targets.sum(1), 1, rtol=1e-6)


def test_sms_keeps_its_lone_quotes(shared):
    path = shared / "data/messy/sms_spam_crlf/SMSSpamCollection.gz"
    made = examples_of(path, ColumnSettings("text", "label"), columns=("label", "text"))
    assert tuple(made.targets.sum(0)) == (4827, 747)
    assert made.labels == ("ham", "spam")
    assert sum(text.startswith('"') for (text,) in made.texts) == 54
    assert not any("\r" in text for (text,) in made.texts)


def test_imdb_is_unwrapped(shared):
    made = examples_of(shared / "data/messy/imdb_sample/imdb_sample.csv.gz", ColumnSettings("review", "sentiment"))
    assert tuple(made.targets.sum(0)) in ((502, 498), (498, 502))
    assert not any(text.startswith(('b"', "b'")) for (text,) in made.texts)
    assert any("1,000 values were Python bytes literals" in note for note in made.report.notes)


def test_ag_news(shared):
    path = shared / "data/messy/ag_news_test/test.csv.gz"
    columns = ColumnSettings(("title", "description"), "class")
    made = examples_of(path, columns, columns=("class", "title", "description"))
    assert made.labels == ("1", "2", "3", "4")
    assert tuple(made.targets.sum(0)) == (1900,) * 4
