"""Cells of a table of systems: which runs are made, the choice of the rate, resuming; and the sample of rows."""

import json
import pathlib

import pytest

from bench import glue_runs
from bench.cells import CellFile
from bench.glue_runs import System
from bert.errors import InputError
from tasks.classification import glue
from tests.bench.fake_glue import write_glue

RATES = (1e-4, 3e-4)


class Trainer:
    """Notes its runs; the second rate is better, and a run may be interrupted."""

    def __init__(self, stop_after: int = 1000):
        self.runs, self.stop_after = list[tuple](), stop_after

    def __call__(self, task, rate, seed):
        if len(self.runs) == self.stop_after:
            raise KeyboardInterrupt
        self.runs.append((task, rate, seed))
        titles = [column.title for column in glue_runs.columns_of(task)]
        return {title: None if rate == RATES[0] else seed / 100 for title in titles}


def cells_of(folder: pathlib.Path) -> CellFile:
    return CellFile(folder / "cells.jsonl", {"rows": 10})


def test_the_rate_is_chosen_by_a_run_that_is_not_reported(tmp_path):
    train, cells = Trainer(), cells_of(tmp_path)
    system = System("BERT", train, RATES, 2)
    glue_runs.fill(cells, [system], ("rte",))
    assert train.runs == [("rte", 1e-4, 0), ("rte", 3e-4, 0), ("rte", 3e-4, 1), ("rte", 3e-4, 2)]
    assert glue_runs.values(cells, system, ("rte",)) == {"RTE": [1.0, 2.0]}


def test_one_rate_needs_no_choice(tmp_path):
    train = Trainer()
    glue_runs.fill(cells_of(tmp_path), [System("BERT", train, (None,), 2)], ("mrpc",))
    assert train.runs == [("mrpc", None, 1), ("mrpc", None, 2)]


def test_a_stopped_command_redoes_the_cell_it_was_in(tmp_path, capsys):
    first, second, whole = Trainer(stop_after=3), Trainer(), Trainer()
    with pytest.raises(KeyboardInterrupt):
        glue_runs.fill(cells_of(tmp_path), [System("BERT", first, RATES, 2)], ("rte", "mnli"))
    path = tmp_path / "cells.jsonl"
    path.write_bytes(path.read_bytes()[:-5])  # killed while it wrote the third
    glue_runs.fill(cells_of(tmp_path), [System("BERT", second, RATES, 2)], ("rte", "mnli"))
    glue_runs.fill(cells_of(tmp_path / "whole"), [System("BERT", whole, RATES, 2)], ("rte", "mnli"))
    assert first.runs[:2] + second.runs == whole.runs
    assert "8 of 8: BERT" in capsys.readouterr().out


def test_an_undefined_score_counts_as_nothing(tmp_path):
    cells, system = cells_of(tmp_path), System("BERT", Trainer(), RATES[:1], 2)
    glue_runs.fill(cells, [system], ("stsb", "mnli"))
    expected = {"STS-B": [0.0, 0.0], "MNLI-m": [0.0, 0.0], "MNLI-mm": [0.0, 0.0]}
    assert glue_runs.values(cells, system, ("stsb", "mnli")) == expected


def test_the_average_is_over_columns_for_each_seed():
    assert glue_runs.averages({"a": [1.0, 2.0], "b": [3.0, 6.0]}) == [2.0, 4.0]


@pytest.mark.parametrize("task", ["sst2", "cola", "stsb", "mrpc", "rte", "mnli", "qqp", "qnli"])
def test_a_sample_has_rows_of_the_training_part_and_all_others(tmp_path, task):
    data = write_glue(tmp_path / "glue", (task,), rows=12)
    folder = str(glue_runs.sampled(task, str(data), 5, tmp_path / "sample"))

    def rows(source, split):
        return [
            {name: row[name] for name in row if name != "index"} for row in glue.read(task, str(source), split).rows
        ]

    sample, every = rows(folder, "train"), rows(data, "train")
    assert len(sample) == 5
    assert all(row in every for row in sample)
    for column in glue_runs.columns_of(task):
        assert rows(folder, column.split) == rows(data, column.split)


def test_a_sample_of_more_rows_than_there_are_is_the_training_part(tmp_path):
    data = write_glue(tmp_path / "glue", ("rte",), rows=4)
    folder = glue_runs.sampled("rte", str(data), 9, tmp_path / "sample")
    assert glue.read("rte", str(folder), "train").rows == glue.read("rte", str(data), "train").rows


def test_wrong_tasks_are_refused(tmp_path):
    data = write_glue(tmp_path / "glue", ("rte",), rows=4)
    glue_runs.check_tasks(("rte",), str(data))
    with pytest.raises(InputError, match=r"--tasks: .*'wnli'.*mnli"):
        glue_runs.check_tasks(("wnli",), str(data))
    with pytest.raises(InputError, match="glue: no train of cola: looked for"):
        glue_runs.check_tasks(("rte", "cola"), str(data))
    (data / "RTE" / "dev.tsv").unlink()
    with pytest.raises(InputError, match="glue: no validation of rte"):
        glue_runs.check_tasks(("rte",), str(data))


def test_scores_are_those_of_the_last_evaluation(tmp_path, monkeypatch):
    rows = [{"step": step, "split": "validation", "accuracy": step / 10} for step in (3, 1, 2)]

    def run(name, *words):
        folder = pathlib.Path(words[-1].removeprefix("--workdir="))
        folder.mkdir()
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    monkeypatch.setattr(glue_runs.commands, "run", run)
    assert glue_runs.finetuned("rte", tmp_path, "model", 1, 1e-4) == {"RTE": 0.2}
