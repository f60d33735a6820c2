"""What a report says of folders that hold no run, half a run, or a damaged one."""

import html
import itertools
import json
import re
import shutil

import pytest

from bert.errors import InputError
from bert.reports import page, records, runs, settings, text
from tests.bert.reports.made_runs import SCORES, logged, made_run

ROW = {"place": "rows.csv:2", "loss": 1.0, "truth": "yes", "predicted": {"label": "no"}, "text": ["a text"]}


def test_a_run_is_read_as_it_was_written(tmp_path):
    folder = made_run(tmp_path / "a", "classification", evaluation=SCORES)
    run = runs.read(folder, "a")
    assert run.task == "classification"
    assert run.steps == 40
    assert run.splits["train"]["loss"] == [(line["step"], line["loss"]) for line in logged(folder, "train")]
    assert run.scores == SCORES["scores"]
    assert run.start["metric"] == "accuracy"
    assert run.remarks == []
    assert page.remarks([run]) == []


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda folder: folder.mkdir(), r"no run here.*name the folder of a run"),
        (lambda folder: None, r"no run here"),
        (lambda folder: (made_run(folder), (folder / "config.json").write_text("{"))[0], r"config\.json.*not JSON"),
        (lambda folder: (folder.mkdir(), (folder / "config.json").write_text("{}"))[0], r"is no run .*of a model"),
    ],
)
def test_a_folder_without_a_run_is_refused(tmp_path, made, message):
    made(tmp_path / "folder")
    with pytest.raises(InputError, match=rf"folder.*{message}"):
        runs.read_all([str(tmp_path / "folder")])


def test_a_model_directory_inside_a_run_is_refused_with_the_runs_name(tmp_path):
    folder = made_run(tmp_path / "a", evaluation=SCORES)
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    with pytest.raises(InputError, match=rf"its run may be {folder}$"):
        runs.read_all([str(folder / "model")])


def test_a_run_given_twice_is_refused(tmp_path):
    folder = made_run(tmp_path / "a", evaluation=SCORES)
    with pytest.raises(InputError, match=r"is given twice.*once"):
        runs.read_all([str(folder), f"{folder}/../a"])


def test_a_folder_of_seeds_stands_for_its_runs(tmp_path):
    for seed in (2, 10):
        made_run(tmp_path / "all" / f"seed-{seed}", seed=seed, evaluation=SCORES)
    (tmp_path / "all" / "metrics.jsonl").write_text('{"seed": 2}\n')
    found = runs.read_all([str(tmp_path / "all")])
    assert [run.directory.name for run in found] == ["seed-2", "seed-10"]


@pytest.mark.parametrize("content", [None, b"", b'{"step": 2, "split": "tra'])
def test_a_run_that_has_just_begun_says_so(tmp_path, content):
    folder = made_run(tmp_path / "a")
    (folder / "metrics.jsonl").unlink() if content is None else (folder / "metrics.jsonl").write_bytes(content)
    run = runs.read(folder, "a")
    begun = "metrics.jsonl is not there" if content is None else "has no line yet"
    assert any(begun in remark for remark in run.remarks)
    assert any("evaluation.json is not there" in remark for remark in run.remarks)
    assert "no evaluation has been logged" in page.page([run])
    assert begun in text.text([run])


def test_a_run_still_going_shows_what_is_there(tmp_path):
    """A half-written line is left out, a damaged one is counted, and scores are those of the last evaluation."""
    folder = made_run(tmp_path / "a", "classification")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('damaged\n{"step": 42, "split": "train", "loss": 1')
    run = runs.read(folder, "a")
    assert run.steps == 40
    assert run.scores["accuracy"] == {"value": logged_accuracy(folder)}
    assert any("1 line(s) of metrics.jsonl cannot be read" in remark for remark in run.remarks)
    assert any("still going" in remark for remark in run.remarks)
    assert repr(logged_accuracy(folder)) in page.page([run])


def logged_accuracy(folder):
    lines = [line for line in (folder / "metrics.jsonl").read_text().splitlines() if "accuracy" in line]
    return json.loads(lines[-1])["accuracy"]


@pytest.mark.parametrize(
    "damage",
    [
        "{",
        json.dumps({"task": "classification", "scores": {"accuracy": {"value": 1.0}}, "confusion": 3, "classes": [1]}),
        json.dumps({"probes": [1]}),
    ],
)
@pytest.mark.parametrize("task", ["classification", ""])
def test_a_damaged_evaluation_leaves_a_page_that_says_so(tmp_path, damage, task):
    folder = made_run(tmp_path / "a", task, evaluation=SCORES)
    (folder / records.EVALUATION).write_text(damage)
    assert "<h2>Curves</h2>" in page.page([runs.read(folder, "a")])


@pytest.mark.parametrize(
    ("damage", "remark"),
    [
        ({"scores": [1]}, r"evaluation\.json: scores cannot be read"),
        ({"scores": {"f1": {"value": "high"}}}, r"evaluation\.json: scores\.f1 cannot be read"),
        ({"scores": {"f1": {"value": 0.5, "low": "x", "high": 1}}}, r"scores\.f1 cannot be read"),
        ({"scores": {"f1": 0.5}, "baseline": 3, "step": "last", "rows_scored": 1.5}, r"baseline, step, rows_scored"),
        ({"baseline": {"f1": None, "accuracy": 0.5}}, r"baseline\.f1 cannot be read"),
        ({"scores": {"f1": {"value": 10**400}}}, r"larger than any float"),
    ],
)
@pytest.mark.parametrize("task", ["classification", ""])
def test_values_of_another_form_are_left_out_and_named(tmp_path, damage, remark, task):
    folder = made_run(tmp_path / "a", task, evaluation=SCORES, rows=[ROW])
    (folder / records.EVALUATION).write_text(json.dumps(damage))
    run = runs.read(folder, "a")
    assert any(re.search(remark, said) for said in run.remarks)
    assert remark_is_shown(run)


@pytest.mark.parametrize(
    ("file", "line", "remark"),
    [
        (
            records.STARTS,
            {"time": 5, "versions": [1], "metric": ["x"]},
            r"starts\.jsonl: time, versions, metric cannot",
        ),
        (records.STARTS, {"command": "bert", "changed": [1], "devices": 7, "data": {}}, r"command, changed.* 1 more"),
        (records.VALIDATION, {"place": "rows.csv:3"}, r"1 line\(s\) of validation\.jsonl"),
        (records.VALIDATION, ROW | {"loss": "big"}, r"1 line\(s\) of validation\.jsonl"),
        (records.VALIDATION, ROW | {"loss": float("nan")}, r"1 line\(s\) of validation\.jsonl"),
        ("metrics.jsonl", {"step": 10**30, "split": "train", "loss": 1.0}, r"1 line\(s\) of metrics\.jsonl"),
    ],
)
def test_lines_of_another_form_are_left_out_and_counted(tmp_path, file, line, remark):
    folder = made_run(tmp_path / "a", "classification", evaluation=SCORES, rows=[ROW])
    with (folder / file).open("a") as out:
        out.write(json.dumps(line) + "\n")
    run = runs.read(folder, "a")
    assert any(re.search(remark, said) for said in run.remarks)
    assert run.rows == [ROW]
    assert remark_is_shown(run)


def remark_is_shown(run):
    return html.escape(run.remarks[-1]) in page.page([run]) and run.remarks[-1] in text.text([run])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400])
def test_logged_values_that_no_chart_can_show_are_undefined(tmp_path, value):
    folder = made_run(tmp_path / "a", "classification", evaluation=SCORES)
    with (folder / "metrics.jsonl").open("a") as out:
        out.write(f'{{"step": 42, "split": "train", "loss": {value}}}\n')
    run = runs.read(folder, "a")
    assert run.splits["train"]["loss"][-1] == (42, None)
    assert "loss by step" in text.text([run])
    assert "undefined" in page.page([run])


def test_a_run_without_a_validation_part_says_so(tmp_path):
    folder = made_run(tmp_path / "a", "classification", start={"loss": "", "metric": ""})
    said = page.remarks([runs.read(folder, "a")])
    assert any("no validation part" in remark for remark in said)


def test_a_new_start_takes_away_what_the_last_end_left(tmp_path):
    folder = made_run(tmp_path / "a", evaluation=SCORES, rows=[{"loss": 1.0}])
    (folder / "report.html").write_text("old")
    records.remove(folder)
    assert not any((folder / name).exists() for name in (records.EVALUATION, records.VALIDATION, "report.html"))
    records.add_start(folder, {"command": ["again"]})
    starts = runs.read(folder, "a").starts
    assert [start["command"][-1] for start in starts] == [starts[0]["command"][-1], "again"]


def test_of_many_rows_the_worst_and_others_at_equal_distances_are_kept():
    losses = [float(i % 7919) for i in range(10_000)]
    kept = records.bounded(losses, 100)
    assert kept == sorted(kept)
    assert len(kept) == 100
    worst = sorted(range(10_000), key=lambda i: -losses[i])[:50]
    assert set(worst) <= set(kept)
    others = sorted(losses[i] for i in set(kept) - set(worst))
    assert others[0] < 200
    assert max(b - a for a, b in itertools.pairwise(others)) < 300
    assert 1 in records.bounded([3.0, float("nan"), 1.0], 2)  # the worst of all
    assert records.bounded([1.0, 2.0], 2) == [0, 1]


def test_rows_and_scores_that_are_not_finite_are_null(tmp_path):
    folder = made_run(
        tmp_path / "a", evaluation={"scores": {"loss": {"value": float("inf")}}}, rows=[ROW | {"loss": float("nan")}]
    )
    run = runs.read(folder, "a")
    assert run.scores == {"loss": {"value": None}}
    assert run.rows == [ROW | {"loss": None}]
    assert (run.evaluation["rows_scored"], run.evaluation["rows_kept"]) == (1, 1)


def test_settings_that_differ_stand_with_both_values_those_that_were_changed_first(tmp_path):
    a = made_run(tmp_path / "a", "classification", epochs=3, text="x")
    b = made_run(tmp_path / "b", "classification", epochs=4, text="y", labels=["no"])
    rows = settings.differing([runs.read(a, "a"), runs.read(b, "b")])
    assert rows == [("text", ["x", "y"]), ("epochs", [3, 4])]
    c = shutil.copytree(a, tmp_path / "c")
    assert settings.differing([runs.read(a, "a"), runs.read(c, "c")]) == []


def test_runs_of_different_tasks_are_said_not_to_compare(tmp_path):
    a, b = made_run(tmp_path / "a", "classification", evaluation=SCORES), made_run(tmp_path / "b", evaluation=SCORES)
    said = page.remarks([runs.read(a, "a"), runs.read(b, "b")])
    assert any("different tasks (classification, pretraining)" in remark for remark in said)


def test_the_text_form_has_scores_settings_and_the_curve(tmp_path):
    folder = made_run(tmp_path / "a", "classification", evaluation=SCORES)
    lines = text.text([runs.read(folder, "a")]).splitlines()
    assert any(line.split() == ["accuracy", "0.8123", "(0.7000", "to", "0.9000)"] for line in lines)
    assert any(line.split()[:1] == ["text"] and "</script>" in line for line in lines)
    drawn = next(i for i, line in enumerate(lines) if line.startswith("loss by step"))
    top, bottom = lines[drawn + 1], lines[drawn + text.LINES]
    assert top.split("|")[1].index(".") < bottom.split("|")[1].index(".")  # the loss falls
    assert "o" in "".join(lines[drawn + 1 : drawn + text.LINES + 1])
    losses = [line["loss"] for line in logged(folder, "train")] + [
        line["cross_entropy"] for line in logged(folder, "validation")
    ]
    assert top.split()[0] == f"{max(losses):.4f}"
    assert bottom.split()[0] == f"{min(losses):.4f}"


def test_the_text_form_compares_runs(tmp_path):
    a = made_run(tmp_path / "a", "classification", evaluation=SCORES, epochs=3)
    b = made_run(tmp_path / "b", "classification", seed=1, epochs=5)
    lines = text.text([runs.read(a, "a"), runs.read(b, "b")]).splitlines()
    assert any(line.split() == ["epochs", "3", "5"] for line in lines)
    scores = next(line for line in lines if line.split()[:1] == ["accuracy"])
    assert "0.8123" in scores
    assert f"{logged_accuracy(b):.4f}" in scores
    assert any("different data" in line for line in lines)
