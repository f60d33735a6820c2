"""Run logs: exactly one line a report whatever was killed, arithmetic counts, times for people."""

import json
import resource

import pytest

from bert.errors import InputError, RunError
from bert.training import tracking


def test_lines_beyond_the_restored_step_and_half_lines_are_dropped(tmp_path):
    """A run killed after logging step 30 and going on from 20 has each step once; a line cut short is gone."""
    path = tmp_path / "metrics.jsonl"
    rows = [json.dumps({"step": step, "split": "train", "loss": 1.0}) for step in (10, 20, 30)]
    path.write_text("\n".join(rows) + '\n{"step": 15, "spl')
    metrics = tracking.MetricsFile(tmp_path, 20)
    metrics.write(30, "train", {"loss": 2.0, "mlm_accuracy": None})
    metrics.close()
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["step"], row["loss"]) for row in kept] == [(10, 1.0), (20, 1.0), (30, 2.0)]
    assert kept[-1]["mlm_accuracy"] is None
    assert list((tmp_path / "tensorboard").iterdir())


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0:00"), (6.5, "1:05"), (372.3, "1:02:03")])
def test_rates_in_words(seconds, text):
    """Ten steps left of 20: the time for them, the share of the peak as a percentage, and none where it is unknown."""
    progress = tracking.Progress(20, 10, flops_per_token=1.0)
    rates = {"tokens_per_second": 12345.6, "seconds_per_step": seconds, "peak_share": 0.456}
    assert progress.format_rates(10, rates) == {"tokens/s": "12,346", "left": text, "of peak": "46%"}
    assert "of peak" not in progress.format_rates(10, rates | {"peak_share": None})


def test_the_log_is_json_also_where_a_gradient_was_not_finite(tmp_path):
    """A skipped step's infinite norm becomes null, not the word Infinity that no JSON reader takes."""
    metrics = tracking.MetricsFile(tmp_path, 0)
    metrics.write(1, "train", {"gradient_norm": float("inf"), "loss": float("nan")})
    metrics.close()
    row = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=pytest.fail)
    assert row["gradient_norm"] is None
    assert row["loss"] is None


def test_nothing_timed_has_no_rate():
    """A log line for the very step after which the clock was started: null, not 0 tokens a second."""
    progress = tracking.Progress(20, 0, flops_per_token=1.0)
    progress.restart(5)
    assert set(progress.rates(5).values()) == {None}
    assert progress.format_rates(5, progress.rates(5)) == {}


@pytest.mark.parametrize(
    "line",
    [b'{"step": 1, "split": "\xff"}', b'{"step": 1, "split": "\xed\xa0\x80"}', b"7", b"[1]", b'{"step": "1"}',
     b"[" * 100_000, b"\r"],
)  # fmt: skip
def test_a_log_with_a_line_that_cannot_be_read_is_kept_aside(tmp_path, caplog, line):
    """The lines that can be read stay; nothing of the user's is lost."""
    row = b'{"step": 1, "split": "train"}\n'
    (tmp_path / "metrics.jsonl").write_bytes(row + line + b"\n" + row)
    tracking.MetricsFile(tmp_path, 1).close()
    assert (tmp_path / "metrics.jsonl").read_bytes() == row + row
    assert (tmp_path / "metrics.jsonl.damaged").read_bytes() == row + line + b"\n" + row
    assert "metrics.jsonl:2" in caplog.text


@pytest.mark.parametrize("name", ["metrics.jsonl", "tensorboard"])
def test_what_stands_in_the_way_is_named(tmp_path, name):
    """A folder in the place of the log, a file in that of the folder of events; neither is removed."""
    if name == "tensorboard":
        (tmp_path / name).write_text("mine")
    else:
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=rf"{name}: .*move (it )?away"):
        tracking.MetricsFile(tmp_path, 0)
    assert (tmp_path / name).exists()


def write(metrics: tracking.MetricsFile, steps: int) -> None:
    for step in range(steps):
        metrics.write(step, "train", {"loss": 1.0})


def test_a_full_disk_is_one_line(tmp_path):
    """Files of at most 500 bytes stand for it. The half line goes at the next start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    metrics = tracking.MetricsFile(tmp_path, 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(RunError, match=r"metrics.jsonl: .*too large.*room"):
            write(metrics, 100)
        with pytest.raises(RunError, match="make room"):
            metrics.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    tracking.MetricsFile(tmp_path, 4).close()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4]


def test_the_name_of_a_metric_makes_no_line_of_its_own(caplog):
    """Those of labels are whatever the labels are."""
    caplog.set_level("INFO", logger="absl")
    tracking.Progress(20, 10, flops_per_token=1.0).report(10, "validation", {"f1:a\nb\x1b": 0.5})
    assert r"validation  f1:a\nb\x1b 0.5000" in caplog.text
