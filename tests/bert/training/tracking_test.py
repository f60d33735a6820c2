"""Run logs: exactly one line a report whatever was killed, arithmetic counts, times for people."""

import json

import pytest

from bert.config import BertConfig
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


@pytest.mark.parametrize(("length", "predictions", "mega"), [(128, 20, 546), (512, 77, 588)])
def test_arithmetic_of_a_training_token_equals_the_published_counts(length, predictions, mega):
    """Base: 546 MFLOP a token at 128 and 588 at 512, masked positions only at the vocabulary, to a quarter percent."""
    base = BertConfig.of_size("base", vocab_size=30522)
    assert tracking.training_flops_per_token(base, length, predictions) / 1e6 == pytest.approx(mega, rel=2.5e-3)


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0:00"), (6.5, "1:05"), (372.3, "1:02:03")])
def test_rates_in_words(seconds, text):
    """Ten steps left of 20: the time for them, the share of the peak as a percentage, and none where it is unknown."""
    progress = tracking.Progress(20, 10, unit_flops=1.0, peak=None)
    rates = {"tokens_per_second": 12345.6, "seconds_per_step": seconds, "peak_share": 0.456}
    assert progress.told(10, rates) == {"tokens/s": "12,346", "left": text, "of peak": "46%"}
    assert "of peak" not in progress.told(10, rates | {"peak_share": None})


def test_the_peak_of_this_cpu_is_measured_and_plausible():
    """Above one and below a million GFLOP/s: a unit off by a thousand would show."""
    assert 1e9 < tracking.peak_flops("float32") < 1e15
