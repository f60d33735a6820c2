"""What the page shows of classifications: matrix, classes, curves and worst rows are those of the evaluation."""

import pytest

from bert.reports import page, runs
from bert.reports.views import classification
from tests.bert.reports.made_runs import NASTY, made_run
from tests.bert.reports.made_scores import made
from tests.bert.reports.reading import drawn, table

pytestmark = pytest.mark.slow  # opens a browser


def opened(show, folder, kind, classes):
    evaluation, rows, _ = made(kind, classes)
    return show(made_run(folder / "a", "classification", evaluation=evaluation, rows=rows)), evaluation, rows


@pytest.mark.parametrize("classes", [2, 4])
def test_classes_have_matrix_scores_curves_and_calibration(show, tmp_path, classes):
    browser, evaluation, rows = opened(show, tmp_path, "class", classes)
    counts, labels = evaluation["confusion"]["counts"], evaluation["confusion"]["labels"]
    cells = {(cell["truth"], cell["predicted"]): cell["rows"] for cell in drawn(browser, "confusion matrix")}
    assert cells == {(a, b): counts[i][j] for i, a in enumerate(labels) for j, b in enumerate(labels)}
    browser.run("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    assert [[int(n) for n in row[1:]] for row in table(browser, "Rows by true and predicted")] == counts
    shown = {row[0]: row[1:] for row in table(browser, "Scores of each class")}
    for label, scores in evaluation["classes"].items():
        names = ("precision", "recall", "f1", "support", "predicted", "roc_auc", "average_precision")
        assert [float(value) for value in shown[label]] == [scores[name]["value"] for name in names]
    for title, key in (("ROC", "roc"), ("precision over recall", "precision_recall")):
        curves = evaluation["curves"][key]
        got = drawn(browser, title)
        assert {row["class"] for row in got} == set(curves) == set(labels[classes == 2 :])
        for label, points in curves.items():
            assert [[row["x"], row["y"]] for row in got if row["class"] == label] == points
    bins = evaluation["curves"]["calibration"]["bins"]
    assert [row["rows"] for row in drawn(browser, "calibration")] == [row["count"] for row in bins]
    assert f"{evaluation['curves']['calibration']['error']:.4f}" in browser.run("document.body.textContent")
    worst = sorted(rows, key=lambda row: -row["loss"])[:50]
    listed = table(browser, "50 of 120 rows")
    assert [(row[0], row[1], float(row[2])) for row in listed] == [(r["place"], r["id"], r["loss"]) for r in worst]
    assert all(NASTY in row[-1] for row in listed)


def test_of_many_classes_the_most_confused_pairs_are_shown(show, tmp_path):
    browser, evaluation, _ = opened(show, tmp_path, "class", 15)
    counts, labels = evaluation["confusion"]["counts"], evaluation["confusion"]["labels"]
    pairs = table(browser, "Of 15 classes")
    most = max(counts[i][j] for i in range(15) for j in range(15) if i != j)
    assert int(pairs[0][2]) == most
    for truth, predicted, rows, share in pairs:
        i = labels.index(truth)
        assert int(rows) == counts[i][labels.index(predicted)]
        assert float(share) == pytest.approx(int(rows) / sum(counts[i]))


def test_intervals_of_shares_are_wilsons():
    assert classification.wilson(1.0, 2) == pytest.approx((0.3424, 1.0), abs=1e-4)
    assert classification.wilson(0.5, 2) == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert classification.wilson(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert classification.wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)  # Newcombe 1998, table I


def test_no_two_lines_look_alike(show, tmp_path):
    browser, _, _ = opened(show, tmp_path, "class", 10)
    find = "find(f => f.querySelector('strong').textContent === 'ROC').querySelectorAll('.mark-line path')"
    look = "[...p].map(p => p.getAttribute('stroke') + ' ' + (p.getAttribute('stroke-dasharray') ?? ''))"
    looks = browser.run(f"(p => {look})([...document.querySelectorAll('figure')].{find})")
    lines = [line for line in looks if "--soft" not in line]  # but the diagonal
    assert len(lines) == len(set(lines)) == 10


def test_texts_have_room_on_narrow_screens(show, tmp_path):
    browser, _, _ = opened(show, tmp_path, "class", 2)
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    assert browser.run("Math.min(...[...document.querySelectorAll('td p')].map(p => p.clientWidth))") > 200
    browser.call("Emulation.clearDeviceMetricsOverride")


def test_several_labels_have_each_their_line(show, tmp_path):
    browser, evaluation, _ = opened(show, tmp_path, "classes", 3)
    assert [row[0] for row in table(browser, "Scores of each class")][:3] == list(evaluation["classes"])
    assert {row["class"] for row in drawn(browser, "ROC")} == set(evaluation["classes"])


def test_numbers_are_drawn_against_the_truth(show, tmp_path):
    browser, evaluation, rows = opened(show, tmp_path, "number", 1)
    got = drawn(browser, "predicted against true numbers")
    assert [(row["truth"], row["predicted"]) for row in got] == [(r["truth"], r["predicted"]["value"]) for r in rows]
    assert [row["rows"] for row in drawn(browser, "residuals")] == evaluation["residuals"]["counts"]


def test_a_long_validation_part_says_how_many_of_its_rows_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("bert.reports.records.KEPT", 40)
    evaluation, rows, _ = made("number", 1)
    run = runs.read(made_run(tmp_path / "a", "classification", evaluation=evaluation, rows=rows), "a")
    assert len(run.rows) == 40
    assert {row["id"] for row in sorted(rows, key=lambda row: -row["loss"])[:20]} <= {row["id"] for row in run.rows}
    assert "40 of 120 rows: the worst, and others" in page.page([run])
