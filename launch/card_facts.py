"""What a run tells the model card: settings, data and scores. Names of files, never paths: a card may be published.

bert/interop/model_card.py makes the card of it.
"""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from ml_collections import ConfigDict

from bert.errors import InputError
from bert.interop import model_card
from bert.metric_names import is_count, is_note
from bert.store.reader import Store
from bert.training import run_directory, tracking
from bert.training.evaluate import Metrics
from tasks.job import ExamplesJob

# The settings that a reader of a card needs; the run has all of them.
_SETTINGS = (
    "batch_size", "max_length", "epochs", "optimizer.name", "optimizer.learning_rate", "optimizer.schedule",
    "optimizer.warmup_steps", "warmup_share", "optimizer.weight_decay", "optimizer.frozen_layers", "label_smoothing",
    "class_weights", "examples.objective", "examples.mask_rate", "examples.whole_words", "model.dtype", "add_tokens",
)  # fmt: skip
_WITHOUT_EFFECT = (None, "", -1, False)


def training(values: Mapping[str, Any], workdir: pathlib.Path, step: int) -> dict[str, Any]:
    """Steps, tokens and the settings that shaped them, of a run's ``values``; the model that it began with."""
    settings = {name: values[name] for name in _SETTINGS if values.get(name) not in _WITHOUT_EFFECT}
    tokens = _tokens(workdir, step)
    steps = {"steps": step, **({"tokens, without padding": tokens} if tokens else {})}
    base = {"base": model_card.name_of(pathlib.Path(values["init_from"]).absolute())} if values["init_from"] else {}
    return {**base, "training": steps | settings | {"seed": values["seed"]}}


def _tokens(workdir: pathlib.Path, step: int) -> int:
    """Tokens that were trained on up to a step, as the log has them; 0 where it cannot be read."""
    try:
        rows = [row for _, row in tracking.read_log(workdir / run_directory.METRICS) if row]
        return int(sum(row.get("tokens") or 0 for row in rows if row["split"] == "train" and row["step"] <= step))
    except (InputError, OSError, TypeError):
        return 0


def prepared(store: Store) -> dict[str, Any]:
    """Of a prepared folder: what was kept and dropped."""
    report = store.manifest["report"]
    names = ("read", "kept", "empty", "duplicates", "sentences", "tokens", "unknown_share", "validation_documents")
    shown = {"read": "documents read", "kept": "documents kept", "empty": "dropped, empty"}
    shown |= {"duplicates": "dropped, duplicates", "unknown_share": "share of unknown tokens"}
    counts = {shown.get(name, name.replace("_", " ")): report[name] for name in names if name in report}
    return {"prepared text": pathlib.Path(store.directory).name, **counts}


def read(config: ConfigDict, examples: ExamplesJob) -> dict[str, Any]:
    """Of labelled examples: what was read, kept and dropped."""
    facts: dict[str, Any] = {}
    parts = {"training": (config.data, examples.train), "validation": (config.validation, examples.validation)}
    for name, (path, part) in parts.items():
        if part is None:
            continue
        report, unit = part.report, examples.unit
        facts[f"{name} file"] = _names(path or config.data)
        facts |= {f"{name}: {unit} read": report.read, f"{name}: {unit} kept": report.kept}
        facts |= {f"{name}: dropped, {why}": count for why, (count, _) in report.dropped.items()}
    return facts


def _names(path: str) -> str:
    """The name of a file, or of two with a comma, such as a text and its translation, without their folders."""
    return ",".join(pathlib.Path(part).name for part in path.split(","))


def scores(
    data: str, values: Metrics, baseline: Mapping[str, float | None], of: str, title: Callable[[str], str] = str
) -> dict[str, Any]:
    """Scores on ``data``, beside those of a baseline, which ``of`` names; empty where there are none."""
    rows: dict[str, Any] = {}
    for name, value in values.items():
        is_repeated = title(name) in (row["title"] for row in rows.values())  # f1 and f1:LABEL may be the same
        if value is not None and not is_repeated and not is_count(name) and not is_note(name):
            beside = baseline.get(name)
            rows[name] = {"title": title(name), "value": value} | ({} if beside is None else {"baseline": beside})
    if not rows:
        return {}
    return {"scores": {"data": data, "values": rows, **({"baseline": of} if baseline else {})}}


def with_intervals(facts: Mapping[str, Any], evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """The facts with the intervals and the baseline of a run's evaluation.json, for the scores that they have."""
    scored, baseline = facts.get("scores"), evaluation.get("baseline") or {}
    if not scored:
        return dict(facts)
    rows = {}
    for name, row in scored["values"].items():
        score = evaluation["scores"].get(name, {})
        interval = {bound: score[bound] for bound in ("low", "high") if bound in score}
        beside = baseline.get(name)
        rows[name] = row | interval | ({} if beside is None else {"baseline": beside})
    of = {"baseline": evaluation["baseline_is"]} if baseline else {}
    return {**facts, "scores": {**scored, **of, "values": rows}}
