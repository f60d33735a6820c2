"""`bert report`, and what a run leaves at its end: its scores are those that were logged."""

import json
import os

import pytest

from bert.errors import InputError
from bert.reports import page, runs
from launch import report
from tests.bert.reports.made_runs import SCORES, logged, made_run
from tests.launch.review_table import QUICK
from tests.launch.review_table import run as finetune
from tests.launch.tiny_pretraining import TINY
from tests.launch.tiny_pretraining import run as pretrain

pytestmark = pytest.mark.usefixtures("one_device")


def show(*words) -> None:
    report.run(["report", *map(str, words)])


@pytest.fixture
def folder_of_run(tmp_path):
    return made_run(tmp_path / "a", "classification", evaluation=SCORES)


def test_one_run_has_its_report_in_its_folder_several_where_it_is_said(folder_of_run, tmp_path, capsys):
    show(folder_of_run)
    assert "<h2>Curves</h2>" in (folder_of_run / "report.html").read_text()
    assert capsys.readouterr().out == f"wrote {folder_of_run / 'report.html'}\n"
    other = made_run(tmp_path / "b", "classification", seed=1)
    show(folder_of_run, other, f"--out={tmp_path / 'both.html'}")
    assert "<h1>2 runs</h1>" in (tmp_path / "both.html").read_text()


def test_the_text_form_writes_nothing(folder_of_run, capsys):
    before = sorted(os.listdir(folder_of_run))
    show(folder_of_run, "--text")
    assert "loss by step" in capsys.readouterr().out
    assert sorted(os.listdir(folder_of_run)) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no run is named"),
        (["{run}", "--text", "--out=x.html"], "--text and --out"),
        (["{run}", "{run}"], "given twice"),
        (["nowhere"], "nowhere: no run here"),
        (["{run}", "--out={run}"], "cannot be written"),
    ],
)
def test_bad_input_is_refused_in_one_line(folder_of_run, words, message):
    with pytest.raises(InputError, match=message):
        show(*(word.format(run=folder_of_run) for word in words))


def test_pretraining_leaves_scores_filled_masks_and_the_report(prepared, tmp_path):
    """A run that is started again after its end leaves the same once more."""
    words = (*TINY, f"--config.data={prepared}", "--config.probes=('the [MASK] .',)", f"--workdir={tmp_path / 'run'}")
    pretrain(*words)
    run = runs.read(tmp_path / "run", "run")
    assert run.remarks == []
    last = logged(tmp_path / "run", "validation")[-1]
    assert {name: score["value"] for name, score in run.scores.items()} == {
        name: value for name, value in last.items() if name not in ("step", "split")
    }
    assert set(run.evaluation["baseline"]) == {"mlm_accuracy", "nsp_accuracy"}
    (probe,) = run.evaluation["probes"]
    assert probe["text"] == "the [MASK] ."
    assert len(probe["before"]) == len(probe["after"]) == 5
    assert run.start["command"] == ["python", "-m", "launch.pretrain", *words]
    assert run.start["changed"]["total_steps"] == 6
    assert "model.hidden_dropout" not in run.start["changed"]
    assert "documents kept" in run.start["data"]
    assert "Filled masks" in (tmp_path / "run" / "report.html").read_text()
    pretrain(*words)
    again = runs.read(tmp_path / "run", "run")
    assert len(again.starts) == 2
    assert again.scores == run.scores


@pytest.mark.slow
def test_finetuning_leaves_the_scored_rows_and_scores_that_were_logged(table, folder, tmp_path, monkeypatch, caplog):
    """Of the best evaluation; and a report that cannot be made is a warning."""
    monkeypatch.setattr(page, "page", lambda *_: 1 / 0)
    finetune(*QUICK, *table, f"--config.validation={folder / 'held.csv'}", "--config.epochs=2", f"--workdir={tmp_path}")
    assert [record.levelname for record in caplog.records if "report.html" in record.getMessage()] == ["WARNING"]
    assert not (tmp_path / "report.html").exists()
    run = runs.read(tmp_path, "run")
    best = json.loads((tmp_path / "model" / "config.json").read_text())["finetuning"]["step"]
    assert run.evaluation["step"] == best
    (line,) = [line for line in logged(tmp_path, "validation") if line["step"] == best]
    for name in ("accuracy", "f1", "macro_f1", "cross_entropy", "n"):
        assert run.scores[name]["value"] == pytest.approx(line[name], abs=1e-5), name
    assert run.scores["accuracy"]["low"] <= line["accuracy"] <= run.scores["accuracy"]["high"]
    assert [row["id"] for row in run.rows] == [str(i) for i in range(60)]
    right = sum(row["truth"] == row["predicted"]["label"] for row in run.rows)
    assert right / 60 == pytest.approx(line["accuracy"])
    assert (run.start["metric"], run.start["loss"]) == ("accuracy", "cross_entropy")
