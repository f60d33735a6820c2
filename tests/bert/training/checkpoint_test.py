"""Checkpoints: damage in any file is found when one is read, and the one before is used."""

import gc
import json
import pathlib
import resource
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.errors import InputError, RunError
from bert.training import checkpoint
from bert.training.checkpoint import Checkpoints, best_step, newest_params

# TensorStore's threads complain, now and then before anything listens, that Orbax closed its event loop.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. None:pytest.PytestUnraisableExceptionWarning")
SHARDING = jax.sharding.SingleDeviceSharding(jax.devices()[0])


def state(step: int) -> dict:
    kernel = np.random.default_rng(step).standard_normal((64, 48)).astype(np.float32)
    return {"params": {"kernel": jnp.asarray(kernel), "bias": jnp.ones(48)}, "step": jnp.int32(step)}


TARGET = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=SHARDING), state(0))


def restore(directory: pathlib.Path):
    checkpoints = Checkpoints(directory)
    try:
        return checkpoints.restore(TARGET)
    finally:
        checkpoints.close()


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> pathlib.Path:
    """Checkpoints 4 and 6."""
    directory = tmp_path_factory.mktemp("run") / "checkpoints"
    checkpoints = Checkpoints(directory)
    for step in (4, 6):
        best = {"step": step, "value": 0.5, "waited": 0, "stopped": False}
        checkpoints.save(step, state(step), {"totals": {"loss_sum": 0.1 * step}, "best": best})
    checkpoints.close()
    return directory


@pytest.fixture
def copied(saved, tmp_path) -> pathlib.Path:
    return shutil.copytree(saved, tmp_path / "checkpoints")


def flip(path: pathlib.Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def assert_is(found, step: int) -> None:
    assert found[0] == step
    for a, b in zip(jax.tree.leaves(found[1]), jax.tree.leaves(state(step)), strict=True):
        np.testing.assert_array_equal(a, b)


def largest(step_directory: pathlib.Path) -> pathlib.Path:
    """The file with the arrays."""
    return max((path for path in step_directory.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


def without_digests(step_directory: pathlib.Path, **changes) -> None:
    """Makes a checkpoint one of an earlier version, with these changes of its meta."""
    path = step_directory / "meta" / "metadata"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({"totals": values["totals"], "best": values["best"]} | changes))


def test_a_state_comes_back_as_it_was_saved(saved):
    step, found, meta = restore(saved)
    assert_is((step, found), 6)
    assert meta == {"totals": {"loss_sum": 0.1 * 6}, "best": {"step": 6, "value": 0.5, "waited": 0, "stopped": False}}
    step, params = newest_params(saved)
    np.testing.assert_array_equal(params["kernel"], state(6)["params"]["kernel"])
    assert best_step(saved) == 6


@pytest.mark.parametrize("name", ["[x]", "a*?b[", "ü {a,b} 'q' #%20"])
def test_any_name_of_a_folder_keeps_checkpoints(tmp_path, name):
    """The parts of a checkpoint are found by a pattern, of which the folder's own name is no part."""
    directory = tmp_path / name / "checkpoints"
    save_and_close(Checkpoints(directory), 2)
    assert_is(restore(directory), 2)
    assert newest_params(directory)[0] == 2


def test_a_folder_that_would_lose_checkpoints_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"back\\sl.*backslash.*another folder"):
        Checkpoints(tmp_path / "back\\sl" / "checkpoints")
    assert not list(tmp_path.iterdir())


def test_sums_are_saved_as_they_were(tmp_path):
    """The file is written in a thread, while the loop adds the next step to the same dictionary."""
    checkpoints, totals = Checkpoints(tmp_path / "checkpoints"), {"tokens": 5.0}
    checkpoints.save(2, state(2), {"totals": totals, "best": None})
    totals["tokens"] = 7.0
    checkpoints.close()
    assert restore(tmp_path / "checkpoints")[2]["totals"] == {"tokens": 5.0}


def save_and_close(checkpoints: Checkpoints, step: int) -> None:
    checkpoints.save(step, state(step), {"totals": {}, "best": None})
    checkpoints.close()


def test_a_write_that_fails_is_one_line_and_the_next_start_clears_it_away(tmp_path, capfd):
    """Files of at most 2 kB stand for a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    save_and_close(checkpoints, 2)
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(RunError, match=r"checkpoints: .*large.*2 is whole"):
            save_and_close(checkpoints, 4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    gc.collect()
    assert "Traceback" not in capfd.readouterr().err
    assert_is(restore(tmp_path / "checkpoints"), 2)


def test_a_checkpoint_that_waits_for_a_lost_process_says_so(tmp_path, monkeypatch):
    """No room was lacking; the cause is kept, for the number of that process may follow from it."""
    checkpoints, cause = Checkpoints(tmp_path / "checkpoints"), RuntimeError("UNAVAILABLE: a heartbeat")

    def wait():
        raise TimeoutError("Timed out while waiting for a barrier.") from cause

    monkeypatch.setattr(checkpoints._manager, "wait_until_finished", wait)
    with pytest.raises(RunError, match=r"checkpoints: .*another process.*same") as caught:
        checkpoints.close()
    assert caught.value.__cause__ is cause
    monkeypatch.undo()
    checkpoints.close()


@pytest.mark.parametrize("where", ["arrays", "meta/metadata", "state/_METADATA", "empty", "without meta"])
def test_damage_is_found_and_the_checkpoint_before_is_used(copied, caplog, where):
    """Of the run and of its parameters alone; the latter moves nothing, for the run may be at work."""
    newest = copied / "6"
    match where:
        case "arrays":  # in the middle of an array, where nothing else has a checksum
            flip(largest(newest), 8 * 6000)
        case "empty":
            (copied / "99999").mkdir()
        case "without meta":
            shutil.rmtree(newest / "meta")
        case _:
            flip(newest / where, 8 * 40 + 1)
    whole = 6 if where == "empty" else 4
    step, params = newest_params(copied)
    assert step == whole
    np.testing.assert_array_equal(params["kernel"], state(whole)["params"]["kernel"])
    assert "cannot be read" in caplog.text
    assert newest.is_dir()
    assert_is(restore(copied), whole)
    assert "is set aside" in caplog.text
    assert (copied.with_name("checkpoints.damaged") / ("99999" if where == "empty" else "6")).is_dir()


@pytest.mark.parametrize("content", ["{}", "[]", '{"totals": null}', '{"totals": {"a": "b"}}', "[" * 10_000, "\xff"])
def test_a_meta_that_makes_no_sense_is_damage(copied, content):
    (copied / "6" / "meta" / "metadata").write_bytes(content.encode("latin-1"))
    assert_is(restore(copied), 4)


def test_checkpoints_of_earlier_versions_are_read_without_digests(copied):
    for step in (4, 6):
        without_digests(copied / str(step))
    assert_is(restore(copied), 6)
    assert newest_params(copied)[0] == 6
    without_digests(copied / "6", best={"step": "six"})
    assert_is(restore(copied), 4)


def test_names_that_are_no_steps_are_left_alone(copied):
    for name in ("notes", "007", "6.old", "²", "٣"):
        (copied / name).mkdir()
    (copied / "8").write_text("mine")
    assert newest_params(copied)[0] == 6
    assert_is(restore(copied), 6)
    assert (copied / "notes").is_dir()


def test_where_all_are_damaged_nothing_is_moved(copied):
    for step in ("4", "6"):
        flip(largest(copied / step), 8 * 6000)
    with pytest.raises(InputError, match=r"6: array params/\w+ .*; 4: array"):
        newest_params(copied)
    with pytest.raises(RunError, match=r"6: array .*; 4: array"):
        restore(copied)
    assert (copied / "6").is_dir()
    with pytest.raises(InputError, match="no finished checkpoint"):
        newest_params(copied / "nowhere")


def test_a_load_while_a_run_saves_reads_the_newer_checkpoint(copied, monkeypatch):
    """The newest one is deleted while it is read, for two more were saved."""
    read = checkpoint._read_params

    def rotated(path):
        if path.name == "6":
            (copied / "4").rename(copied / "8")
            shutil.rmtree(path)
        return read(path)

    monkeypatch.setattr(checkpoint, "_read_params", rotated)
    assert newest_params(copied)[0] == 8


@pytest.mark.parametrize("error", [MemoryError(), PermissionError("no"), ValueError("RESOURCE_EXHAUSTED: no memory")])
def test_what_is_no_damage_sets_nothing_aside(copied, monkeypatch, error):
    """An older checkpoint would be no help where there is no memory or no permission."""

    def fail(*_):
        raise error

    monkeypatch.setattr(Checkpoints, "_read", fail)
    with pytest.raises(RunError, match=r"checkpoints/6: .*left as it is"):
        restore(copied)
    assert sorted(entry.name for entry in copied.parent.iterdir()) == ["checkpoints"]
