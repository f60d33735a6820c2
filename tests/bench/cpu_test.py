"""The comparison on a CPU: which rows, what runs in turns, and what the lines of the table say."""

import sys

import pytest

from bench import cpu, environments
from bench.rows import DEFAULT, OTHERS, ROWS, Row
from bench.work import Work
from bert.errors import InputError, RunError

PROCESS = """
import os, time
from bench import turns
def step():
    time.sleep({seconds})
    {then}
turns.serve(step, lambda: None, {{"arena": os.environ.get("MALLOC_ARENA_MAX")}}, lambda: 2**30)
"""


def process(seconds=0.0, then=""):
    return [sys.executable, "-c", PROCESS.format(seconds=seconds, then=then)]


def test_rows_are_chosen_by_name():
    """In the table's order; those that fit into ten minutes where none is named."""
    assert [row.name for row in cpu.chosen(None)] == list(DEFAULT)
    assert [row.name for row in cpu.chosen("all")] == list(ROWS)
    last, first = list(ROWS)[-1], next(iter(ROWS))
    assert [row.name for row in cpu.chosen(f"{last},{first}")] == [first, last]
    with pytest.raises(InputError, match=r"^--rows names 'pretrain-huge'; it may be all, or list pretrain-mini-f32, "):
        cpu.chosen("pretrain-mini-f32,pretrain-huge")


def test_lengths_are_counted_with_a_vocabulary():
    with pytest.raises(InputError, match="--vocab is missing"):
        cpu.run(["cpu", "--out=x.json", "--rows=finetune-sst2-f32", "--glue=GLUE"])


def test_each_row_runs_the_same_work_everywhere(monkeypatch):
    """The flags of a row go to every process, with the lengths that were counted anew; each file is there."""
    monkeypatch.setattr(environments, "python_of", lambda name: f".bench/{name}/bin/python")
    folder = environments.pathlib.Path(cpu.__file__).parent
    for row in ROWS.values():
        found = cpu.commands(row, {"--lengths=sst2": "--lengths=my.json"})
        assert list(found) == ["ours", *row.goals]
        assert {name: command[0] for name, command in found.items() if name != "ours"} == {
            name: f".bench/{OTHERS[name].environment}/bin/python" for name in row.goals
        }
        given = [flag.replace("=sst2", "=my.json") for flag in row.flags]
        for command in found.values():
            assert command[3 : 3 + len(given)] == given
            assert (folder / f"{command[2].rsplit('.', 1)[1]}.py").exists()


def test_turns(tmp_path):
    """Blocks alternate; the ratio is that of the medians; one that ends early has an error, and the others go on."""
    log = tmp_path / "log"
    note = "open({!r}, 'a').write({!r})"
    row = Row("x", "ours", (), {"slow": 1.5, "broken": None}, steps=2)
    processes = {
        "ours": process(0.02, note.format(str(log), "o")),
        "slow": process(0.06, note.format(str(log), "s")),
        "broken": [sys.executable, "-c", "raise SystemExit(3)"],
    }
    measured = cpu.measure(row, processes)
    warm_up = "o" * 3 + "s" * 3  # the first step and a block
    assert log.read_text() == warm_up + "ooss" * cpu.BLOCKS
    slow, broken = measured["lines"]
    assert slow["ratio"] == pytest.approx(3, rel=0.5)
    assert 20 <= slow["ours"] < 60  # milliseconds
    assert slow["goal"] == 1.5
    assert broken["error"] == "broken ended with exit code 3 before it said anything"
    assert len(measured["processes"]["slow"]["seconds"]) == cpu.BLOCKS


def test_one_that_ends_in_the_middle_stops_nothing():
    row = Row("x", "ours", (), {"dies": None})
    measured = cpu.measure(
        row,
        {
            "ours": process(),
            "dies": process(then="import sys; step.n = getattr(step, 'n', 0) + 1; step.n < 4 or sys.exit(1)"),
        },
    )
    assert "exit code 1" in measured["lines"][0]["error"]
    with pytest.raises(RunError, match=r"^x: ours ended with exit code 1"):
        cpu.measure(row, {"ours": process(then="raise SystemExit(1)"), "dies": process()})


@pytest.mark.parametrize("kept", [True, False])
def test_all_processes_have_the_same_allocator_where_the_row_says_so(kept):
    row = Row("x", "ours", (), {"other": None}, kept=kept)
    measured = cpu.measure(row, {"ours": process(), "other": process()})
    assert measured["processes"]["other"]["told"]["arena"] == ("1" if kept else None)
    assert measured["allocator"] == ("kept by all" if kept else "as shipped")


def test_starts_are_timed_from_the_beginning_of_the_process(monkeypatch):
    """The first start of each is not counted."""
    monkeypatch.setattr(cpu, "STARTS", 1)
    row = Row("x", "ours", (), {"other": 1.0}, start=60.0)
    measured = cpu.measure(row, {"ours": process(), "other": process(0.5)})
    seconds = {name: told["seconds"] for name, told in measured["processes"].items()}
    assert len(seconds["ours"]) == len(seconds["other"]) == 1
    assert seconds["other"][0] > 0.5
    against = {line["against"]: line for line in measured["lines"]}
    assert against["other"]["ratio"] == pytest.approx(seconds["other"][0] / seconds["ours"][0])
    assert against["the clock"]["ratio"] == pytest.approx(60 / seconds["ours"][0])


def test_the_share_of_the_matrix_peak():
    """Arithmetic that a step needs, by the time of a step, by the peak."""
    row = Row("x", "ours", ("--size=base", "--batch=8", "--length=128"), {}, share=0.85)
    (line,) = cpu.lines(row, {"ours": {"seconds": [2.0, 4.0, 3.0]}}, [2e11, 3e11, 4e11])
    assert line["ratio"] == pytest.approx(Work("base", 8, 128).flops / 3.0 / 3e11)
    assert (line["against"], line["goal"]) == ("the matrix peak", 0.85)
