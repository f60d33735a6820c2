"""A tracker that writes what it is told into RUN/recorded.jsonl; it fails and hangs as files in the folder say."""

import json
import time


def start(record, workdir, settings):
    if (workdir / "hangs").exists():
        time.sleep(1000)
    if (workdir / "is slow").exists():
        time.sleep(2)
    new = not record.id
    record.id = record.id or "first"
    record.save()
    recording = Recording(workdir)
    recording.write(start=record.id, new=new, settings=settings)
    return recording


class Recording:
    def __init__(self, workdir):
        self.workdir = workdir

    def write(self, **values):
        with (self.workdir / "recorded.jsonl").open("a") as file:
            file.write(json.dumps(values) + "\n")

    def log(self, step, split, values):
        failures = self.workdir / "failures"
        if failures.exists() and (left := int(failures.read_text())) > 0:
            failures.write_text(str(left - 1))
            raise ConnectionError("no route\nto host")
        self.write(step=step, split=split, values=values)

    def close(self, outcome):
        self.write(close=outcome)
