"""The comparison on a CPU: the choice of rows, the turns, and the lines of the table."""

import sys

import pytest

from bench import cpu, environments
from bench.rows import DEFAULT, OTHERS, ROWS, Row
from bench.work import Work
from bert.errors import InputError, RunError

# Its clock counts the given seconds a step, whatever the machine does.
PROCESS = """
import os, time
from bench import turns
done = []
time.perf_counter = lambda: {seconds} * len(done)
def step():
    done.append(1)
    {then}
turns.serve(step, lambda: None, {{"arena": os.environ.get("MALLOC_ARENA_MAX")}}, lambda: 2**30)
"""


def process(seconds=0.0, then=""):
    return [sys.executable, "-c", PROCESS.format(seconds=seconds, then=then)]


def test_rows_are_chosen_by_name():
    """In the order of the table; by default those that fit into ten minutes."""
    assert [row.name for row in cpu.chosen(None)] == list(DEFAULT)
    assert [row.name for row in cpu.chosen("all")] == list(ROWS)
    last, first = list(ROWS)[-1], next(iter(ROWS))
    assert [row.name for row in cpu.chosen(f"{last},{first}")] == [first, last]
    with pytest.raises(InputError, match=r"--rows .*'pretrain-huge'"):
        cpu.chosen("pretrain-mini-f32,pretrain-huge")


def test_lengths_are_counted_with_a_vocabulary():
    with pytest.raises(InputError, match="--vocab is missing"):
        cpu.run(["cpu", "--out=x.json", "--rows=finetune-sst2-f32", "--glue=GLUE"])


def test_each_row_runs_the_same_work_everywhere(monkeypatch):
    """Every process gets the flags of the row, with recounted lengths, and its module exists."""
    monkeypatch.setattr(environments, "python_of", lambda name: f".bench/{name}/bin/python")
    folder = environments.pathlib.Path(cpu.__file__).parent
    for row in ROWS.values():
        commands = cpu.commands(row, {"--lengths=sst2": "--lengths=my.json"})
        assert list(commands) == ["ours", *row.goals]
        assert {name: command[0] for name, command in commands.items() if name != "ours"} == {
            name: f".bench/{OTHERS[name].environment}/bin/python" for name in row.goals
        }
        row_flags = [flag.replace("=sst2", "=my.json") for flag in row.flags]
        for command in commands.values():
            assert command[3 : 3 + len(row_flags)] == row_flags
            package, module = command[2].split(".")
            assert package == folder.name
            assert (folder / f"{module}.py").exists()


def test_turns(tmp_path):
    """Blocks alternate, the ratio is that of the medians, and a process that exits early has an error."""
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
    assert slow["ratio"] == pytest.approx(3)
    assert slow["ours"] == pytest.approx(20)  # milliseconds
    assert slow["goal"] == 1.5
    assert broken["error"].startswith("broken ended with exit code 3")
    assert len(measured["processes"]["slow"]["seconds"]) == cpu.BLOCKS


def test_a_process_that_exits_in_the_middle_does_not_stop_the_others():
    row = Row("x", "ours", (), {"dies": None})
    measured = cpu.measure(row, {"ours": process(1), "dies": process(1, "len(done) < 4 or exit(1)")})
    assert "exit code 1" in measured["lines"][0]["error"]
    with pytest.raises(RunError, match=r"^x: ours ended with exit code 1"):
        cpu.measure(row, {"ours": process(then="exit(1)"), "dies": process()})


@pytest.mark.parametrize("keeps_memory", [True, False])
def test_all_processes_have_the_same_allocator_if_the_row_says_so(keeps_memory):
    row = Row("x", "ours", (), {"other": None}, keeps_memory=keeps_memory)
    measured = cpu.measure(row, {"ours": process(1), "other": process(1)})
    assert measured["processes"]["other"]["told"]["arena"] == ("1" if keeps_memory else None)
    assert measured["allocator"] == ("kept by all" if keeps_memory else "as shipped")


def test_starts_are_timed_from_the_beginning_of_the_process(monkeypatch):
    """The first start of each is not counted."""
    monkeypatch.setattr(cpu, "STARTS", 1)
    row = Row("x", "ours", (), {"other": 1.0}, start=60.0)
    measured = cpu.measure(row, {"ours": process(), "other": process(then="time.sleep(0.5)")})
    seconds = {name: process["seconds"] for name, process in measured["processes"].items()}
    assert len(seconds["ours"]) == len(seconds["other"]) == 1
    assert seconds["other"][0] > 0.5
    against = {line["against"]: line for line in measured["lines"]}
    assert against["other"]["ratio"] == pytest.approx(seconds["other"][0] / seconds["ours"][0])
    assert against["the clock"]["ratio"] == pytest.approx(60 / seconds["ours"][0])


def test_the_share_of_the_matrix_peak():
    """FLOPs of a step / seconds of a step / peak FLOP/s."""
    row = Row("x", "ours", ("--size=base", "--batch=8", "--length=128"), {}, share=0.85)
    (line,) = cpu.lines(row, {"ours": {"seconds": [2.0, 4.0, 3.0]}}, [2e11, 3e11, 4e11])
    assert line["ratio"] == pytest.approx(Work("base", 8, 128).flops / 3.0 / 3e11)
    assert (line["against"], line["goal"]) == ("the matrix peak", 0.85)
