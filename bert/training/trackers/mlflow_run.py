"""MLflow. Address and experiment are those of its environment variables (MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME).

Sent are the metrics, the settings as parameters, and the name of the run directory; no code, no model.
Parameters of a run cannot be changed: those of the first start stay.
"""

import hashlib
import os
import pathlib
import re
import time
from collections.abc import Mapping
from typing import Any

from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient

from bert.training.trackers.follower import Record

# mlflow/utils/validation.py
_NOT_IN_NAMES = re.compile(r"[^\w./\- ]")
_LONGEST_NAME, _LONGEST_VALUE, _PARAMETERS_AT_ONCE = 250, 6000, 100
_STATUS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


def start(record: Record, workdir: pathlib.Path, settings: Mapping[str, Any]) -> "MlflowRun":
    client = MlflowClient()
    if not record.id:
        record.id = client.create_run(_experiment(client), run_name=str(workdir)).info.run_id
        record.save()
    client.update_run(record.id, status="RUNNING")
    run = client.get_run(record.id)
    for key in run.data.metrics:  # a killed run may have sent a line that tracker.json does not have
        split, newest = key.split("/", 1)[0], max(point.step for point in client.get_metric_history(record.id, key))
        record.sent[split] = max(newest, record.sent.get(split, -1))
    named = {_name(name): str(value)[:_LONGEST_VALUE] for name, value in settings.items()}
    new = [Param(name, value) for name, value in named.items() if name not in run.data.params]
    for first in range(0, len(new), _PARAMETERS_AT_ONCE):
        client.log_batch(record.id, params=new[first : first + _PARAMETERS_AT_ONCE])
    return MlflowRun(client, record.id)


class MlflowRun:
    """See `follower.Tracker`."""

    def __init__(self, client: MlflowClient, id: str):
        self._client, self._id = client, id

    def log(self, step: int, split: str, values: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        metrics = [Metric(_name(f"{split}/{name}"), float(value), now, step) for name, value in values.items()]
        for first in range(0, len(metrics), 1000):
            self._client.log_batch(self._id, metrics=metrics[first : first + 1000])

    def close(self, outcome: str) -> None:
        self._client.set_terminated(self._id, _STATUS[outcome])


def _experiment(client: MlflowClient) -> str:
    """The id of the experiment that the environment names, which is created where it is new."""
    if id := os.environ.get("MLFLOW_EXPERIMENT_ID"):
        return id
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "Default")
    experiment = client.get_experiment_by_name(name)
    return experiment.experiment_id if experiment else client.create_experiment(name)


def _name(name: str) -> str:
    """A name as MLflow takes it; a checksum keeps apart those that would become equal."""
    safe = _NOT_IN_NAMES.sub("_", name)
    if safe == name and len(name) <= _LONGEST_NAME:
        return name
    return f"{safe[: _LONGEST_NAME - 9]}-{hashlib.sha256(name.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"
