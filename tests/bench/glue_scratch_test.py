"""The comparison from scratch: its tables, wrong arguments, and all of it on a few sentences (slow)."""

import re

import pytest

from bench import glue_encoders, glue_runs, glue_scratch
from bench.cells import CellFile
from bert.errors import InputError
from tests.bench.fake_glue import write_glue
from tests.launch.conftest import prepared  # noqa: F401  (a fixture)


def test_the_table_tells_which_systems_differ():
    scores = {
        "linear": {"RTE": [55.0], "CoLA": [0.0]},
        "GPT": {"RTE": [52.0, 53.0, 54.0], "CoLA": [0.0, 0.0, 0.0]},
        "BERT": {"RTE": [62.0, 63.0, 64.0], "CoLA": [9.0, 10.0, 11.0]},
    }
    lines = glue_scratch.score_table(scores).splitlines()
    assert lines[0] == "| dev, mean ± 95 % | RTE | CoLA | average |"
    assert lines[2:5] == [
        "| linear | 55.0 | 0.0 | 27.5 |",
        "| GPT | 53.0 ± 2.5 | 0.0 ± 0.0 | 26.5 ± 1.2 |",
        "| BERT | 63.0 ± 2.5 | 10.0 ± 2.5 | 36.5 ± 2.5 |",
    ]
    assert lines[-3:] == [
        "- RTE: BERT > linear, GPT",
        "- CoLA: BERT > linear, GPT",
        "- average: BERT > linear, GPT",
    ]


def test_the_linear_model_learns_the_word_that_tells_the_label(tmp_path):
    data = write_glue(tmp_path / "glue", ("sst2", "stsb"), rows=60)
    assert glue_scratch.linear("sst2", data)["SST-2"] > 0.9
    assert glue_scratch.linear("stsb", data)["STS-B"] > 0.5


def test_a_stopped_pretraining_goes_on_to_the_same_step(tmp_path, monkeypatch):
    """The number of steps is measured once; finished encoders are not pretrained again."""
    timed, trained = [], []

    def pretrain(words, steps, workdir):
        if len(trained) == 1:
            trained.append(None)
            raise KeyboardInterrupt
        trained.append((workdir.name, steps))
        return {"steps": steps, "minutes": 1.0, "tokens": 10, "held_out": {"mlm_perplexity": 9.0}}

    monkeypatch.setattr(glue_encoders, "seconds_per_step", lambda words: timed.append(words) or 0.5)
    monkeypatch.setattr(glue_encoders, "pretrain", pretrain)
    encoders = glue_encoders.encoders("tiny", 128, 40)[:2]
    arguments = encoders, "text", {"minutes": 2}
    with pytest.raises(KeyboardInterrupt):
        glue_scratch.pretrain_all(CellFile(tmp_path / "cells.jsonl", {}), *arguments)
    cells = CellFile(tmp_path / "cells.jsonl", {})
    glue_scratch.pretrain_all(cells, *arguments)
    assert len(timed) == 2
    assert trained == [("BERT", 240), None, ("bidirectional RNN", 240)]
    table = glue_scratch.encoder_table(cells, encoders, {"BERT": 1000, "bidirectional RNN": 1040})
    assert "| bidirectional RNN | 1,040 | 1.040 | 240 | 1.0 | 0.0 | 9.0 (mlm) |" in table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--minutes=1", "--steps=3"], "--minutes and --steps are both given"),
        (["--size=huge"], "--size is 'huge'; it must be one of tiny"),
        (["--tasks=rte,cola"], "no train of cola"),
        (["--text=absent"], "absent"),
        (["--steps=0"], "--steps=0: must be a whole number"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(tmp_path, prepared, options, message):  # noqa: F811
    data = write_glue(tmp_path / "glue", ("rte",), rows=4)
    usual = [f"--text={prepared}", f"--data={data}", f"--out={tmp_path / 'runs'}", "--tasks=rte"]
    with pytest.raises(InputError, match=message) as error:
        glue_scratch.run(["glue_scratch", *usual, *options])
    assert "\n" not in str(error.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_all_systems_on_a_few_sentences(tmp_path, capsys, monkeypatch, prepared):  # noqa: F811
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")  # one device
    data = write_glue(tmp_path / "glue", ("rte",), rows=24)
    words = [f"--text={prepared}", f"--data={data}", f"--out={tmp_path / 'runs'}", "--tasks=rte", "--steps=4"]
    words += ["--seeds=1", "--rates=1e-3"]
    glue_scratch.run(["glue_scratch", *words])
    printed = capsys.readouterr().out
    names = ["linear", "no pretraining", "BERT", "bidirectional RNN", "GPT", "BERT, twice as deep"]
    assert re.findall(r"^\| (.*?) \| [\d.]+ \| [\d.]+ \|$", printed, re.MULTILINE) == names
    monkeypatch.setattr(glue_runs, "finetuned", None)
    glue_scratch.run(["glue_scratch", *words])
    assert capsys.readouterr().out.splitlines()[-12:] == printed.splitlines()[-12:]
