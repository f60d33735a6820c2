"""The report as text for a terminal: key scores, settings that differ, and the loss drawn with plain characters."""

from collections.abc import Sequence

from bert.errors import printable
from bert.reports import curves, page, settings
from bert.reports.html import interval, short
from bert.reports.runs import Point, Run

COLUMNS, LINES = 60, 8  # of a curve
MARKS = {"train": ".", "validation": "o"}


def text(runs: Sequence[Run]) -> str:
    """Lines without a last line end."""
    parts = [_one(runs[0])] if len(runs) == 1 else [_compared(runs)]
    if remarks := page.remarks(runs):
        parts.append("\n".join(remarks))
    return printable("\n\n".join(parts), lines=True)


def _one(run: Run) -> str:
    lines = [run.name, *(f"  {name:<14}{value}" for name, value in page.facts(run))]
    if changed := settings.changed(run):
        lines += ["", "settings that differ from the recipe"]
        lines += [f"  {name:<{_width(changed)}}{settings.shown(value)}" for name, value in changed.items()]
    lines += _scores([run])
    for name in ("loss", run.start.get("metric")):
        if drawn := _drawn(run, name):
            lines += ["", *drawn]
    return "\n".join(lines)


def _compared(runs: Sequence[Run]) -> str:
    differing = [(name, [settings.shown(value) for value in values]) for name, values in settings.differing(runs)]
    lines = [f"{len(runs)} runs: {', '.join(run.name for run in runs)}", "", "settings that differ"]
    lines += _table([("", [run.name for run in runs]), *differing]) if differing else ["  none"]
    lines += _scores(runs)
    for run in runs:
        lines += ["", run.name, *(_drawn(run, "loss") or ["  no curve yet"])]
    return "\n".join(lines)


def _scores(runs: Sequence[Run]) -> list[str]:
    names = list(dict.fromkeys(name for run in runs for name in run.scores))
    rows = []
    for name in names:
        cells = []
        for run in runs:
            score = run.scores.get(name)
            between = f" ({interval(score)})" if score and interval(score) else ""
            cells.append("–" if score is None else curves.shown(name, score.get("value")) + between)
        rows.append((curves.title(name), cells))
    heading = [("", [run.name for run in runs])] if len(runs) > 1 else []
    return ["", "scores of the validation part (95 % intervals)", *_table([*heading, *rows])] if rows else []


def _table(rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    widths = [max(len(row[1][i]) for row in rows) for i in range(len(rows[0][1]))]
    first = _width([name for name, _ in rows])
    return [
        f"  {name:<{first}}"
        + "  ".join(f"{value:<{width}}" for value, width in zip(values, widths, strict=True)).rstrip()
        for name, values in rows
    ]


def _width(names: Sequence[str] | dict[str, object]) -> int:
    return max(map(len, names), default=0) + 2


def _drawn(run: Run, name: str | None) -> list[str]:
    """The curve of a metric against the step; empty where it has none."""
    lines = {curve.split: curve for curve in curves.curves_of([run]).get(name or "", ())}
    points = [point for curve in lines.values() for point in _known(curve.points)]
    if len(points) < 2:
        return []
    low, high = min(value for _, value in points), max(value for _, value in points)
    first, last = min(step for step, _ in points), max(step for step, _ in points)
    cells = [[" "] * COLUMNS for _ in range(LINES)]
    for split, curve in lines.items():
        for step, value in _known(curve.points):
            column = round((step - first) / max(last - first, 1) * (COLUMNS - 1))
            line = round((high - value) / (high - low) * (LINES - 1)) if high > low else LINES // 2
            if cells[line][column] != MARKS["validation"]:
                cells[line][column] = MARKS.get(split, "x")
    labels = [f"{short(high):>10}", *[" " * 10] * (LINES - 2), f"{short(low):>10}"]
    key = ", ".join(f"{MARKS.get(split, 'x')} {split}" for split in lines)
    ends = f"{first:,}", f"{last:,}"
    foot = " " * 12 + ends[0] + ends[1].rjust(COLUMNS - len(ends[0]))
    drawn = [f"{label} |{''.join(row)}".rstrip() for label, row in zip(labels, cells, strict=True)]
    return [f"{curves.title(name or '')} by step ({key})", *drawn, foot]


def _known(points: Sequence[Point]) -> list[tuple[int, float]]:
    return [(step, value) for step, value in points if value is not None]
