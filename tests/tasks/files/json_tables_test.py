"""JSON that would take all time or memory."""

import json

import pytest

from tasks.files import json_tables
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_new_name_a_row_is_refused(write, name):
    """Each row would get an empty cell for the names of all others."""
    rows = [{"text": "a", f"name {i}": 1} for i in range(20_000)]
    content = json.dumps(rows) if name == "a.json" else "".join(json.dumps(row) + "\n" for row in rows)
    assert says(message_of(read_table, write(name, content)), f"{name}: 20,000 rows ... 20,001")


def test_rows_may_leave_out_most_columns(write, monkeypatch):
    monkeypatch.setattr(json_tables, "MOST_EMPTY", 100)
    rows = [{"text": "a", f"name {i % 30}": 1} for i in range(300)]
    table = read_table(write("a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert len(table.columns) == 31
    assert table.rows[0]["name 7"] is None


def test_a_long_file_that_is_parsed_as_a_whole_is_refused(write, monkeypatch):
    monkeypatch.setattr(json_tables, "FILE_LIMIT", 20)
    content = json.dumps({"text": "a word and more"})
    assert says(message_of(read_table, write("a.json", content)), "a.json: longer than 20 characters; ... jsonl")
    assert len(read_table(write("a.jsonl", content)).rows) == 1
