"""The file of finished cells: found again, also after a kill, and refused where they are of another table."""

import json

import pytest

from bench.cells import CellFile
from bert.errors import InputError

SETTINGS = {"rows": 100, "rates": (1e-4, 3e-4)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "runs" / "cells.jsonl"
    cells = CellFile(path, SETTINGS)
    for seed in (1, 2):
        cells.add({"task": "rte", "seed": seed, "score": seed / 2})
    return path


def test_cells_are_found_by_their_keys(path):
    cells = CellFile(path, SETTINGS)
    assert cells.find(task="rte", seed=2) == {"task": "rte", "seed": 2, "score": 1.0}
    assert cells.find(task="rte", seed=3) is None
    assert len(cells.select(task="rte")) == 2


def test_half_a_line_is_taken_away(path):
    """As a kill leaves it; the next cell has a line of its own."""
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    cells = CellFile(path, SETTINGS)
    assert [cell["seed"] for cell in cells.cells] == [1]
    cells.add({"task": "rte", "seed": 2, "score": 1.0})
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "settings", [{"rows": 50, "rates": (1e-4, 3e-4)}, {"rates": (1e-4, 3e-4)}, SETTINGS | {"size": 1}]
)
def test_other_settings_are_refused(path, settings):
    with pytest.raises(InputError, match=r"cells\.jsonl:1: (rows|size) .*another"):
        CellFile(path, settings)


@pytest.mark.parametrize("line", ["{", "3", '{"task": "rte"}', "null"])
def test_a_line_that_is_no_cell_is_refused(path, line):
    path.write_text(json.dumps({"task": "rte", "settings": SETTINGS}) + f"\n{line}\n")
    with pytest.raises(InputError, match=r"cells\.jsonl:2: .*no cell"):
        CellFile(path, SETTINGS)


def test_a_folder_in_the_place_of_the_file_and_a_file_in_that_of_its_folder_are_refused(path):
    with pytest.raises(InputError, match=r"runs: no regular file"):
        CellFile(path.parent, SETTINGS)
    with pytest.raises(InputError, match=r"cells\.jsonl: cannot be written"):
        CellFile(path / "more.jsonl", SETTINGS)
