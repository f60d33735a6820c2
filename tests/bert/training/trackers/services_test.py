"""Weights & Biases and MLflow hold the lines of metrics.jsonl, read back with their own packages."""

import contextlib
import json
import pathlib
import subprocess

import pytest

from bench import environments
from bert.training import trackers, tracking

pytestmark = pytest.mark.slow
READY = environments.FOLDER / "trackers" / "ready"
SETTINGS = {"model.num_layers": 2, "encoder": {"dtype": "float32"}, "probes": ["a [MASK]"], "long": "x" * 9000}
MLFLOW = """
import json, sys
from mlflow.tracking import MlflowClient
client, points = MlflowClient(), []
run = client.get_run(sys.argv[1])
for key in run.data.metrics:
    points += [[key, point.step, point.value] for point in client.get_metric_history(sys.argv[1], key)]
print(json.dumps([run.info.run_name, run.info.status, run.data.params, points]))
"""
# A file of wandb is a log as LevelDB writes it: blocks of 32 KiB; a record may be split over several.
WANDB = """
import glob, json, struct, sys
from wandb.proto import wandb_internal_pb2
points, settings, name, exits = [], {}, "", []
for path in sorted(glob.glob(sys.argv[1] + "/wandb/offline-run-*/*.wandb")):
    data, at, record = open(path, "rb").read(), 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind not in (1, 4):  # neither whole nor the last part
            continue
        parsed, record = wandb_internal_pb2.Record.FromString(record), b""
        if parsed.HasField("history"):
            row = {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in parsed.history.item}
            points += [[key, row["step"], value] for key, value in row.items() if "/" in key]
        for item in [*parsed.config.update, *parsed.run.config.update]:
            settings[item.key or ".".join(item.nested_key)] = json.loads(item.value_json)
        name = parsed.run.display_name or name
        if parsed.HasField("exit"):
            exits.append(parsed.exit.exit_code)
print(json.dumps([name, exits, settings, points]))
"""


@pytest.fixture
def packages(monkeypatch):
    """The interpreter that has the trackers' packages, which our processes find behind their own."""
    if not READY.exists():
        pytest.skip("the packages of trackers are not installed; run python -m bench.environments")
    python = pathlib.Path(environments.python_of("trackers"))
    (site,) = python.absolute().parents[1].glob("lib/python*/site-packages")
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("WANDB_MODE", "offline")
    return lambda program, *words: json.loads(subprocess.check_output([python, "-c", program, *words], text=True))


def train(run, steps, resumed_at=0):
    metrics = tracking.MetricsFile(run, resumed_at)
    for step in range(resumed_at + 1, steps + 1):
        metrics.write(step, "train", {"loss": step / 7, "f1 of 北京:1": step / 3, "undefined": None})
        metrics.write(step, "validation", {"accuracy": step / 9})
    metrics.close()


def points(run, named=str):
    rows = [row for _, row in tracking.read_log(run / "metrics.jsonl")]
    return sorted(
        [named(f"{row['split']}/{name}"), row["step"], value]
        for row in rows
        for name, value in row.items()
        if name not in ("step", "split") and value is not None
    )


def killed_and_resumed(service, run):
    """It was killed at step 5, and repeats what came after its checkpoint of step 3."""
    (run / "config.json").write_text(json.dumps(SETTINGS))
    with contextlib.suppress(SystemExit), trackers.following(service, run):
        train(run, 5)
        raise SystemExit(143)
    with trackers.following(service, run):
        train(run, 8, resumed_at=3)
    return json.loads((run / trackers.RECORD).read_text())[service]["id"]


def test_mlflow(packages, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "reviews")
    run = tmp_path / "run"
    run.mkdir()
    id = killed_and_resumed("mlflow", run)
    name, status, parameters, found = packages(MLFLOW, id)
    assert (name, status) == (str(run), "FINISHED")
    assert (parameters["model.num_layers"], parameters["encoder.dtype"]) == ("2", "float32")
    assert len(parameters["long"]) == 6000
    (odd,) = {key for key, _, _ in found if key.startswith("train/f1 of")}
    assert sorted(found) == sorted(points(run, lambda key: odd if key.startswith("train/f1 of") else key))


def test_wandb(packages, tmp_path):
    id = killed_and_resumed("wandb", tmp_path)
    name, exits, settings, found = packages(WANDB, str(tmp_path))
    assert [path.name.endswith(id) for path in (tmp_path / "wandb").glob("offline-run-*")] == [True, True]
    assert (name, exits) == (str(tmp_path)[-128:], [1, 0])
    assert (settings["model.num_layers"], settings["encoder.dtype"]) == (2, "float32")
    assert sorted(found) == points(tmp_path)
