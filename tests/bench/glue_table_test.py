"""GLUE's table of models: published averages, the table, wrong arguments, and all of it on two tiny models (slow)."""

import pytest

from bench import glue_runs, glue_table
from bert.errors import InputError
from tests.bench.fake_glue import write_glue
from tests.launch.review_table import TINY

# As the paper prints them; those of its ELMo row is rounded up from 70.94.
PRINTED = {
    "Pre-OpenAI SOTA": 74.0, "BiLSTM+ELMo+Attn": 71.0, "OpenAI GPT": 75.1, "BERT base": 79.6, "BERT large": 82.1
}  # fmt: skip


def test_printed_averages_are_over_nine_numbers():
    """MNLI-m and -mm count separately."""
    titles = [column.title for column in glue_runs.COLUMNS]
    means = {name: sum(row.values()) / len(row) for name, row in glue_table.published(titles).items()}
    assert len(titles) == 9
    assert means == pytest.approx(PRINTED, abs=0.06)
    once = [title for title in titles if title != "MNLI-mm"]
    assert sum(glue_table.published(once)["BERT base"].values()) / 8 == pytest.approx(79.1, abs=0.06)


def test_the_table_has_intervals_and_averages_of_the_same_columns():
    scores = {"a": {"CoLA": [50.0, 52.0, 54.0], "RTE": [60.0, 62.0, 64.0]}, "b": {"CoLA": [40.0], "RTE": [70.0]}}
    lines = glue_table.table(scores).splitlines()
    # s = 2, t(0.975, 2) = 4.303
    assert lines[2].startswith("| CoLA | 52.0 ± 5.0 | 40.0 | 35.0 | 36.0 | 45.4 | 52.1 | 60.5 |")
    assert lines[4].startswith("| average of 2 | 57.0 ± 5.0 | 55.0 | 48.4 |")
    assert lines[5] == "| average of 9 |  |  | 74.0 | 70.9 | 75.1 | 79.6 | 82.1 |"
    assert "Not computed: MNLI-m, MNLI-mm, QQP, QNLI, SST-2, STS-B, MRPC." in lines[7]


def test_the_whole_table_has_one_average():
    scores = {"a": {column.title: [50.0] for column in glue_runs.COLUMNS}}
    lines = glue_table.table(scores).splitlines()
    assert lines[-1] == "| average of 9 | 50.0 | 74.0 | 70.9 | 75.1 | 79.6 | 82.1 |"


def test_tasks_without_files_are_skipped_by_name(tmp_path, capsys):
    assert glue_table.tasks_in(str(write_glue(tmp_path / "glue", ("rte", "cola"), rows=4))) == ("cola", "rte")
    assert "skipped mrpc: " in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: has no task of GLUE"):
        glue_table.tasks_in(str(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--models=absent", "absent"),
        ("--tasks=rte,mrpc", "no train of mrpc"),
        ("--tasks=wnli", "'wnli'; it must be one of"),
        ("--rates=fast", "--rates=fast: must be numbers"),
        ("--rates=5", "--rates=5: must be numbers between 0 and 1"),
        ("--models=,", "--models=,: names no model"),
        ("--data=absent", "absent: "),
        ("--seeds=0", "--seeds=0: must be a whole number"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(tmp_path, option, message):
    data = write_glue(tmp_path / "glue", ("rte",), rows=4)
    usual = [f"--models={TINY}", f"--data={data}", f"--out={tmp_path / 'cells.jsonl'}"]
    with pytest.raises(InputError, match=message) as error:
        glue_table.run(["glue_table", *usual, option])
    assert "\n" not in str(error.value)
    assert not (tmp_path / "cells.jsonl").exists()


def test_a_folder_that_is_no_model_is_refused_before_anything_runs(tmp_path):
    data = write_glue(tmp_path / "glue", ("rte",), rows=4)
    with pytest.raises(InputError, match="glue"):
        glue_table.run(["glue_table", f"--models={TINY},{data}", f"--data={data}", f"--out={tmp_path / 'cells.jsonl'}"])
    assert not (tmp_path / "cells.jsonl").exists()


@pytest.mark.slow
def test_a_table_of_a_tiny_model(tmp_path, capsys, monkeypatch):
    """Both dev sets of MNLI are scored; a second start computes nothing and prints the same table."""
    monkeypatch.setattr(glue_runs, "LENGTH", 16)
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")  # one device
    data = write_glue(tmp_path / "glue", ("mnli", "stsb"), rows=24)
    words = [f"--models={TINY}", f"--data={data}", f"--out={tmp_path / 'cells.jsonl'}", "--seeds=1"]
    glue_table.run(["glue_table", *words])
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[0] for line in printed if line.startswith("|")][2:] == [
        "| MNLI-m", "| MNLI-mm", "| STS-B", "| average of 3", "| average of 9"
    ]  # fmt: skip
    monkeypatch.setattr(glue_runs, "finetuned", None)
    glue_table.run(["glue_table", *words])
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")] == [
        line for line in printed if line.startswith("|")
    ]
