"""Annotation in rounds: the files as TREC has them, the table, and the whole of it on a few rows."""

import pytest

from bench import active_learning
from tests.launch.review_table import TINY, reviews

LINES = ["HUM:ind Who wrote \xe9mile ?", "LOC:city Where is the city : a book ?"]


def test_questions_have_their_coarse_class(tmp_path):
    (tmp_path / "train.txt").write_bytes("\n".join([*LINES, ""]).encode("latin-1"))
    assert active_learning.read(tmp_path / "train.txt") == [
        {"id": 0, "text": "Who wrote \xe9mile ?", "coarse": "HUM"},
        {"id": 1, "text": "Where is the city : a book ?", "coarse": "LOC"},
    ]


def test_the_table_has_a_line_for_each_number_of_rows():
    runs = [
        {"seed": seed, "chosen_by": chosen_by, "accuracy": {rows: 0.5 + 0.25 * seed for rows in numbers}}
        for seed in (0, 1)
        for chosen_by, numbers in (("entropy", ("100", "200")), ("random", ("200",)))
    ]
    assert active_learning.table(runs).splitlines()[2:] == [
        f"| {name} | {rows} | 0.500, 0.750 | 0.625 | 0.177 |"
        for name, rows in (("entropy", 100), ("entropy", 200), ("random", 200))
    ]


@pytest.mark.slow
def test_rows_are_annotated_in_rounds(monkeypatch):
    """The second round trains on the rows that the first one's model chose, too."""
    monkeypatch.setattr(active_learning, "ROUNDS", 2)
    monkeypatch.setattr(active_learning, "ROWS", 8)
    rows = [{"id": i, "text": row["review"], "coarse": row["liked"]} for i, row in enumerate(reviews(24, 0))]
    written, predicted = [], []
    write, predictions = active_learning.write, active_learning.predictions

    def noted_write(path, rows, *columns):
        written.append((path.stem, [row["id"] for row in rows]))
        write(path, rows, *columns)

    def noted_predictions(*words):
        predicted.append(predictions(*words))
        return predicted[-1]

    monkeypatch.setattr(active_learning, "write", noted_write)
    monkeypatch.setattr(active_learning, "predictions", noted_predictions)
    scores = active_learning.annotate(rows, rows[:4], "margin", 0, str(TINY))
    assert list(scores) == ["8", "16"]
    assert all(0 <= score <= 1 for score in scores.values())
    first, second = (ids for name, ids in written if name == "known")
    (unknown,) = (ids for name, ids in written if name == "unknown")
    assert sorted([*first, *unknown]) == list(range(24))
    least_sure = predicted[1]
    assert second == first + [row["id"] for row in least_sure]
    margins = [row["predicted"]["margin"] for row in least_sure]
    assert margins == sorted(margins)
