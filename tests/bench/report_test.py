"""The results file, its table, and the document that gets the table."""

import json

import pytest

from bench import report
from bert.errors import InputError

MACHINE = {"processor": "X", "instructions": ["fma"], "cores": 2, "memory_gib": 24, "python": "3.11.7"}
LINE = {"against": "torch", "ours": 250.0, "theirs": 1000.0, "unit": "ms", "ratio": 4.0, "goal": 3.2}


def row(name, *lines):
    processes = {"ours": {"told": {"jax": "0.10.2"}}, "torch": {"told": {"torch": "2.13.0"}}}
    return {"row": name, "date": "2026-01-02", "allocator": "as shipped", "processes": processes, "lines": [*lines]}


def test_a_row_replaces_an_older_one_of_its_name(tmp_path):
    """Other rows stay, in the order of the table; rows of another machine, or no longer in the table, do not."""
    path = tmp_path / "bench.json"
    for name in ("gone", "b", "a", "b"):
        report.write(path, report.merged(path, MACHINE, row(name, LINE), ["a", "b", "c", name]))
    assert [line["row"] for line in json.loads(path.read_text())["rows"]] == ["a", "b"]
    other = report.merged(path, MACHINE | {"cores": 4}, row("c"), ["a", "b", "c"])
    assert [line["row"] for line in other["rows"]] == ["c"]


def test_the_table():
    """A line for each comparison, with the error of one that failed, and an empty cell without a goal."""
    broken = {"against": "flax", "ours": 250.0, "unit": "ms", "goal": None, "error": "flax ended with exit code 1"}
    text = report.table({"machine": MACHINE, "rows": [row("mini", LINE, broken)]})
    assert "2 cores of X with fma, 24 GiB, Python 3.11.7; jax 0.10.2, torch 2.13.0. Measured 2026-01-02" in text
    assert "| mini | torch | as shipped | 250 ms | 1000 ms | 4.00 | 3.20 |" in text
    assert "| mini | flax | as shipped | 250 ms | flax ended with exit code 1 | |  |" in text


def test_the_table_goes_between_the_marker_lines(tmp_path):
    """A second run gives the same document, and the text around the table stays."""
    results, document = tmp_path / "bench.json", tmp_path / "x.md"
    results.write_text(json.dumps({"machine": MACHINE, "rows": [row("mini", LINE)]}))
    document.write_text(f"# Title\n\n{report.BEGIN}\nold\n{report.END}\n\nAfter.\n")
    for _ in range(2):
        report.run(["report", f"--results={results}", f"--document={document}"])
        before, rest = document.read_text().split(report.BEGIN)
        inside, after = rest.split(report.END)
        assert (before, after) == ("# Title\n\n", "\n\nAfter.\n")
        assert inside.strip().splitlines()[-1].startswith("| mini | torch |")
        assert "old" not in inside


@pytest.mark.parametrize(
    "text", ["none", f"{report.BEGIN}\n", f"{report.END}\n{report.BEGIN}\n", f"{report.BEGIN} {report.END}"]
)
def test_a_document_without_the_marker_lines_is_left_alone(tmp_path, text):
    document = tmp_path / "x.md"
    document.write_text(text)
    with pytest.raises(InputError, match=r"x\.md: .*bench-update: begin"):
        report.update(document, "table")
    assert document.read_text() == text


def test_nothing_was_measured_yet(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: no such file"):
        report.run(["report", f"--results={tmp_path / 'none.json'}", "--document=x.md"])


def test_this_machine_has_cores_and_memory():
    system = report.machine()
    assert system["cores"] >= 1
    assert system["memory_gib"] >= 1
    assert system["processor"]
