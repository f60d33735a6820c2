"""A file of finished cells of a table, a JSON object a line: a stopped command starts again at the cell it was in."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from bert import files
from bert.errors import InputError, cannot_write
from bert.json_files import read_text

Cell = dict[str, Any]


class CellFile:
    """The cells of a file, which is made where there is none; `add` appends one.

    A last line without an end, as a killed process leaves it, is taken away. ``settings``: what all cells of a table
    have in common, and each holds.

    Raises InputError for a line that is no cell, and for cells that were computed with other settings.
    """

    def __init__(self, path: pathlib.Path, settings: Mapping[str, Any]):
        self.path, self.cells = path, list[Cell]()
        self._settings = json.loads(json.dumps(settings))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)  # now, not after the first cell
        except OSError as error:
            raise cannot_write(path.parent, error) from None
        content = read_text(path) if path.exists() else ""
        lines = content.split("\n")
        for number, line in enumerate(lines[:-1], 1):
            self.cells.append(self._cell(line, f"{path}:{number}"))
        if lines[-1]:
            files.write(path, "".join(f"{line}\n" for line in lines[:-1]))

    def find(self, **keys: Any) -> Cell | None:
        """The first cell with these values; None where there is none yet."""
        return next(iter(self.select(**keys)), None)

    def select(self, **keys: Any) -> list[Cell]:
        """The cells with these values."""
        return [cell for cell in self.cells if all(cell[key] == value for key, value in keys.items())]

    def add(self, cell: Cell) -> Cell:
        with self.path.open("a") as file:
            file.write(json.dumps({**cell, "settings": self._settings}) + "\n")
        self.cells.append(cell)
        return cell

    def _cell(self, line: str, place: str) -> Cell:
        try:
            cell: Cell = json.loads(line)
            settings = cell.pop("settings")
        except (ValueError, LookupError, TypeError, AttributeError):
            raise InputError(f"{place}: is no cell of a table; name another file, or take the line away") from None
        for name in settings | self._settings:
            before, now = settings.get(name), self._settings.get(name)
            if before != now:
                way_out = "a table has one for all cells: set it as before, or name another file"
                raise InputError(f"{place}: {name} was {before!r}, and is {now!r} now; {way_out}")
        return cell
