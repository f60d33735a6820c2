"""The loop: resuming, stopping, evaluating, logging; and that nothing is lost when a run is killed."""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from bert.errors import InputError, RunError
from bert.training import run_directory, train
from bert.training.best import Choice
from bert.training.checkpoint import newest_params
from bert.training.step import Setup
from bert.training.train import fit
from tests.bert.training import killed_run, tiny

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
SIX = {"held_out": 2, "total_steps": 6, "evaluate_every": 3}


def lines(workdir: pathlib.Path) -> list[dict]:
    """metrics.jsonl without what depends on the clock."""
    clock = ("tokens_per_second", "seconds_per_step", "peak_share")
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name not in clock} for row in rows]


def assert_equal_states(one, other) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def random_setup(seed: int = 0) -> Setup:
    """With dropout, accumulation and an average of the parameters."""
    made = tiny.setup(hidden_dropout=0.1, attention_dropout=0.1, micro_batches=2, num_layers=1, ema_decay=0.9)
    return dataclasses.replace(made, seed=seed)


class Crash(Exception):
    """Stands for a kill: nothing in the loop catches it."""


def crashing(run: train.Run, at: int, made=tiny.batch) -> train.Run:
    def batch(number: int):
        if number == at:
            raise Crash
        return made(number)

    return train.Run(**{**run.__dict__, "train_batch": batch})


@pytest.mark.long
def test_a_run_that_crashed_twice_equals_one_that_never_did(tmp_path):
    """20 updates at once, and with crashes at 7 and 14 (between saves, between logs), dropout and accumulation on.

    Parameters, their average, optimizer state and logged values are bit-equal; the batches' order follows, for batch i
    is number i.
    """
    made = random_setup()
    whole = fit(tiny.run(tmp_path / "whole", made, held_out=2))
    for at in (7, 14):
        with pytest.raises(Crash):
            fit(crashing(tiny.run(tmp_path / "parts", made, held_out=2), at))
    parts = fit(tiny.run(tmp_path / "parts", made, held_out=2))
    assert_equal_states(whole.state, parts.state)
    assert lines(tmp_path / "whole") == lines(tmp_path / "parts")
    assert whole.metrics == parts.metrics


@pytest.mark.long
def test_the_average_is_evaluated_and_becomes_the_model(tmp_path):
    """By the loop, by the choice of the best, and where weights are read from a checkpoint."""
    made = random_setup()
    best: list = []
    run = tiny.run(tmp_path, made, held_out=1, total_steps=4, evaluate_every=4)
    choice = Choice("loss", larger=False)
    keep = lambda step, params, metrics: best.append(jax.device_get(params))  # noqa: E731
    outcome = fit(dataclasses.replace(run, choose=choice, on_best=keep))
    average = jax.device_get(outcome.state.model_params)
    assert outcome.metrics == run.evaluate(average) != run.evaluate(outcome.state.params)
    _, read = newest_params(tmp_path / "checkpoints")
    for found in (best[0], read):
        assert_equal_states(found, average)


@pytest.mark.slow
def test_a_checkpoint_of_eight_devices_goes_on_with_two_and_with_one(tmp_path):
    """Saved with fsdp on eight devices at step 8: the last steps on 8, 2 and 1 devices agree to 1e-5."""
    made = tiny.setup(devices=8, mode="fsdp", num_layers=1)
    with pytest.raises(Crash):
        fit(crashing(tiny.run(tmp_path / "crashed", made, total_steps=12), 9))
    ends = []
    for devices, mode in ((8, "fsdp"), (2, "dp"), (1, "dp")):
        workdir = shutil.copytree(tmp_path / "crashed", tmp_path / str(devices))
        made = tiny.setup(devices=devices, mode=mode, num_layers=1)
        ends.append(fit(tiny.run(workdir, made, total_steps=12)).state)
    for other in ends[1:]:
        for a, b in zip(jax.tree.leaves(ends[0].params), jax.tree.leaves(other.params), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.fixture(scope="module")
def six_steps(tmp_path_factory) -> tuple[pathlib.Path, train.Outcome]:
    """A finished run of six steps with two evaluations and checkpoints 4 and 6: its directory and how it ended."""
    workdir = tmp_path_factory.mktemp("runs") / "six"
    return workdir, fit(tiny.run(workdir, **SIX))


@pytest.fixture
def finished(six_steps, tmp_path) -> pathlib.Path:
    """A copy of that run's directory."""
    return shutil.copytree(six_steps[0], tmp_path / "six")


# TensorStore's threads complain, now and then before anything listens, that Orbax closed its event loop.
late_complaints = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. None:pytest.PytestUnraisableExceptionWarning"
)


@pytest.mark.long
@late_complaints
def test_a_truncated_newest_checkpoint_falls_back_to_the_one_before(tmp_path, caplog):
    """One data file of the newest checkpoint cut in half: told, set aside, and the run ends as an unharmed one."""
    whole = fit(tiny.run(tmp_path / "whole", total_steps=12))
    with pytest.raises(Crash):
        fit(crashing(tiny.run(tmp_path / "cut", total_steps=12), 9))
    newest = tmp_path / "cut" / "checkpoints" / "8" / "state" / "d"
    largest = max(newest.iterdir(), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    earlier = tmp_path / "cut" / "checkpoints.damaged" / "8" / "notes.txt"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("what was set aside before stays")
    with caplog.at_level("WARNING"):
        cut = fit(tiny.run(tmp_path / "cut", total_steps=12))
    assert "checkpoints/8 cannot be read and is set aside" in caplog.text
    assert len(list(earlier.parent.parent.iterdir())) == 2
    assert earlier.exists()
    assert_equal_states(whole.state, cut.state)


@late_complaints
def test_checkpoints_that_are_all_damaged_are_an_error_and_not_a_new_start(finished):
    """Random weights must not silently replace a run whose checkpoints cannot be read."""
    for file in (finished / "checkpoints").glob("*/state/d/*"):
        file.write_bytes(b"")
    for _ in range(2):  # the second start must not find an empty folder and begin anew
        with pytest.raises(RunError, match=r"no checkpoint .*\(6: .*; 4: "):
            fit(tiny.run(finished, total_steps=8))
    assert lines(finished)[-1]["step"] == 6


def test_a_run_whose_checkpoints_were_all_set_aside_does_not_begin_anew(finished):
    """Its first weights may have come from elsewhere; drawn ones must not take their place."""
    (finished / "checkpoints").rename(finished / "checkpoints.damaged")
    with pytest.raises(RunError, match="all checkpoints were damaged"):
        fit(tiny.run(finished, total_steps=8))


def test_a_checkpoint_of_another_model_is_refused_and_kept(finished):
    """A run directory of a smaller model: one line that says so, and the checkpoint stays where it is."""
    with pytest.raises(InputError, match="with other parameters"):
        fit(tiny.run(finished, tiny.setup(num_layers=2), total_steps=8))
    assert (finished / "checkpoints" / "6").is_dir()


def test_a_loss_that_stays_bad_stops_the_run_and_keeps_the_good_checkpoint(tmp_path):
    """NaN weights from step 6 on: skipped, then stopped after 3 in a row; the newest checkpoint is from before that."""

    def batch(number: int):
        made = tiny.batch(number)
        if number >= 6:
            made["masked_weights"][:] = np.inf
        return made

    run = tiny.run(tmp_path, stop_after_skips=3)
    said = r"step 9: loss or gradient was not finite 3 times in a row .* checkpoint, of step 4, is from before that$"
    with pytest.raises(RunError, match=said):
        fit(train.Run(**{**run.__dict__, "train_batch": batch}))
    assert run_directory.newest_step(tmp_path) == 4
    with pytest.raises(RunError, match=said):  # going on changes nothing of that
        fit(train.Run(**{**run.__dict__, "train_batch": batch}))
    early = tiny.run(tmp_path / "early", stop_after_skips=3, save_every=7)
    with pytest.raises(RunError, match=r"start again in another folder$"):  # nothing was saved before
        fit(train.Run(**{**early.__dict__, "train_batch": batch}))
    good = fit(tiny.run(tmp_path, total_steps=8)).state
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(good.params))


def test_a_save_that_falls_on_a_bad_step_waits_for_a_good_one(tmp_path):
    """The batches of steps 8 and 9 are bad, and saves are due at 4 and 8: saved at 4 and 10."""

    def batch(number: int):
        made = tiny.batch(number)
        if number in (7, 8):
            made["masked_weights"][:] = np.inf
        return made

    run = tiny.run(tmp_path, total_steps=20)
    with pytest.raises(Crash):
        fit(crashing(train.Run(**{**run.__dict__, "train_batch": batch}), 11, batch))
    assert run_directory.newest_step(tmp_path) == 10


def test_nothing_is_saved_before_the_data_were_checked(tmp_path):
    """A check that fails while the first save waits for it; one that fails between two saves ends the run, too."""
    for name, save_every in (("at a save", 1), ("between saves", 20)):
        check: concurrent.futures.Future[None] = concurrent.futures.Future()
        asked: list[int] = []

        def batch(number: int, check=check, asked=asked):
            asked.append(number)
            if number == 2:
                check.set_exception(InputError("train-00000.tokens: damaged"))
            return tiny.batch(number)

        run = tiny.run(tmp_path / name, save_every=save_every)
        with pytest.raises(InputError, match="damaged"):
            fit(dataclasses.replace(run, train_batch=batch, data_check=check))
        assert not run_directory.has_checkpoints(tmp_path / name)
        assert max(asked) < 8, "it ends soon, not after the last step"
    passed: concurrent.futures.Future[None] = concurrent.futures.Future()
    passed.set_result(None)
    fit(dataclasses.replace(tiny.run(tmp_path / "whole", total_steps=4), data_check=passed))
    assert run_directory.newest_step(tmp_path / "whole") == 4


@pytest.mark.slow
def test_seeds_decide_and_the_same_seed_repeats(tmp_path):
    """The same seed twice gives the same log; another seed another one."""
    logs = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        fit(tiny.run(tmp_path / name, random_setup(seed), total_steps=6, log_every=2))
        logs.append(lines(tmp_path / name))
    assert logs[0] == logs[1] != logs[2]


def test_a_finished_run_that_is_started_again_only_evaluates(six_steps, finished):
    """Same metrics again, no step made, no line twice in the log."""
    before = lines(finished)
    again = fit(crashing(tiny.run(finished, **SIX), 6))
    assert again.metrics == six_steps[1].metrics
    assert_equal_states(six_steps[1].state, again.state)
    assert lines(finished) == before


def test_a_run_beyond_its_total_steps_is_refused_and_not_called_stopped(finished):
    """Six steps done, four asked for: both numbers and the way out; the checkpoint stays."""
    with pytest.raises(InputError, match=r"total_steps is 4, .*give 6"):
        fit(tiny.run(finished, total_steps=4))
    assert (finished / "checkpoints" / "6").is_dir()


def test_log_files_hold_plain_lines(tmp_path, capfd, caplog):
    """Off a terminal: no carriage return, one line every log_every updates with step, loss and rate."""
    with caplog.at_level("INFO", logger="absl"):
        fit(tiny.run(tmp_path, total_steps=12, log_every=3))
    said = "\n".join(record.getMessage() for record in caplog.records if "tracking" in record.pathname)
    assert "\r" not in said + "".join(capfd.readouterr())
    told = [line for line in said.splitlines() if " train " in line]
    assert [line.split()[1] for line in told] == ["3/12", "6/12", "9/12", "12/12"]
    assert all("loss" in line and "tokens/s" in line and "left" in line for line in told)
    assert "compiling" in said


@pytest.mark.parametrize(
    "name", ["total_steps", "log_every", "evaluate_every", "save_every", "stop_after_skips", "keep_checkpoints"]
)
def test_intervals_below_one_are_refused(name):
    with pytest.raises(InputError, match=f"{name} is 0; it must be at least 1"):
        train.LoopSettings(**({"total_steps": 1} | {name: 0}))


# --- real processes ---------------------------------------------------------------------------------------------


def start(*workdirs: pathlib.Path) -> subprocess.Popen:
    one_device = os.environ["XLA_FLAGS"].replace("--xla_force_host_platform_device_count=8", "")
    environment = {**os.environ, "XLA_FLAGS": one_device}
    command = [sys.executable, "-m", "tests.bert.training.killed_run", *map(str, workdirs)]
    return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stderr=subprocess.PIPE, text=True)


def finish(*workdirs: pathlib.Path) -> list[list[np.ndarray]]:
    """The final states of the runs in these folders, which one process brings to their ends."""
    process = start(*workdirs)
    _, said = process.communicate()
    assert process.returncode == 0, said
    return [list(np.load(workdir / "result.npz").values()) for workdir in workdirs]


def kill_after(process: subprocess.Popen, seconds: float, number: int) -> None:
    """Sends a signal some seconds after the first step was made (or when it was made already)."""
    for line in process.stderr:
        if "first step" in line:
            break
    time.sleep(seconds)
    process.send_signal(number)
    process.communicate()


@pytest.mark.slow
def test_sigterm_saves_and_the_next_start_goes_on_exactly(tmp_path):
    """SIGTERM at some step, between two saves or not: exit code 143, and the run ends bit-equal to one in one go."""
    process = start(tmp_path / "stopped")
    kill_after(process, 0.1, signal.SIGTERM)
    assert process.returncode == 128 + signal.SIGTERM
    stopped_at = max(int(path.name) for path in (tmp_path / "stopped" / "checkpoints").iterdir())
    assert 1 <= stopped_at < killed_run.STEPS
    stopped, whole = finish(tmp_path / "stopped", tmp_path / "whole")
    for a, b in zip(stopped, whole, strict=True):
        np.testing.assert_array_equal(a, b)
    assert lines(tmp_path / "stopped") == lines(tmp_path / "whole")


@pytest.mark.slow
def test_twenty_kills_change_nothing(tmp_path):
    """SIGKILL at 20 random moments, during saves too, each followed by a start: parameters, optimizer state and log
    bit-equal to an uninterrupted run's."""
    rng = random.Random(5)
    folders, kills = [tmp_path / "killed 0"], 0
    while kills < 20:
        process = start(folders[-1])
        kill_after(process, rng.uniform(0.0, 0.15), signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
        if process.returncode == 0:  # it was done before the kill: go on with another run
            folders.append(tmp_path / f"killed {kills}")
    whole, *killed = finish(tmp_path / "whole", *folders)
    for folder, state in zip(folders, killed, strict=True):
        for a, b in zip(state, whole, strict=True):
            np.testing.assert_array_equal(a, b)
        assert lines(folder) == lines(tmp_path / "whole")
