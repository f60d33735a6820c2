"""Folders of runs as training leaves them, made without training; for the tests of reports."""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert.reports import records

NASTY = '</script><script>alert(1)</script><!-- <b>bold</b> &amp; "quoted"'


def made_run(
    folder: pathlib.Path,
    task: str = "",
    steps: int = 40,
    seed: int = 0,
    evaluation: Mapping[str, Any] | None = None,
    rows: Sequence[Mapping[str, Any]] = (),
    start: Mapping[str, Any] | None = None,
    held: Mapping[str, float] | None = None,
    **settings: Any,
) -> pathlib.Path:
    """A run that logged every second step and evaluated every tenth; ``evaluation``: None of a run still going.

    ``held``: further metrics of each evaluation.
    """
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    config = {"data": "rows.csv", "data_sha256": f"{seed}", "seed": seed, "optimizer.learning_rate": 1e-3, **settings}
    (folder / "config.json").write_text(json.dumps(config | ({"task": task} if task else {})))
    lines = []
    for step in range(2, steps + 1, 2):
        values = {
            "loss": 3 / step + 0.1 * rng.random(),
            "learning_rate": 1e-3 * step / steps,
            "gradient_norm": rng.random(),
        }
        rates = {"tokens": 100.0, "tokens_per_second": 1e4 * rng.random(), "seconds_per_step": 0.1, "peak_share": None}
        lines.append(
            {
                "step": step,
                "split": "train",
                **values,
                "gradient_norm": rng.random(),
                "skipped": int(step > 20),
                **rates,
            }
        )
        if step % 10 == 0:
            scores = {"accuracy": rng.random(), "cross_entropy": 3 / step, "f1": 0.5, "f1:yes": 0.5, "n": 160}
            lines.append({"step": step, "split": "validation", **scores, **(held or {})})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = ["bert", "finetune", f"--config.text={NASTY}"]
    noted = {"command": command, "changed": {"text": NASTY}, "versions": {"jax": "0.10"}, "devices": "cpu x 1"}
    noted |= {"data": f"rows.csv: {NASTY}", "loss": "cross_entropy", "metric": "accuracy", **(start or {})}
    records.add_start(folder, noted)
    if evaluation is not None:
        records.write_evaluation(folder, evaluation, [row["loss"] for row in rows], lambda i: rows[i])
    return folder


def logged(folder: pathlib.Path, split: str) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl of a split."""
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line["split"] == split]


SCORES = {
    "task": "classification",
    "step": 30,
    "unit": "rows",
    "scores": {
        "accuracy": {"value": 0.8123456789, "reason": None, "low": 0.7, "high": 0.9, "resamples": 1000, "left_out": 0},
        "matthews": {"value": None, "reason": "all rows have one class"},
        "n": {"value": 160.0, "reason": None},
    },
    "baseline": {"accuracy": 0.5},
    "baseline_is": "the more frequent class",
}
