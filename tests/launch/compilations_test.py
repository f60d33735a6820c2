"""A run compiles each of its programs once: the training step, the evaluation, and nothing in its later steps."""

import collections

import jax
import pytest

from bert.data.batches import Batches
from bert.model import forward
from tests.launch import review_table, tiny_pretraining

pytestmark = pytest.mark.usefixtures("one_device")
# Comes before each compilation; what is then found in the cache on disk was counted, too.
LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
WITHOUT_DROPOUT = ("--config.model.hidden_dropout=0.0", "--config.model.attention_dropout=0.0")  # compiles faster
TRAINING, EVALUATION, PREDICTION = "jit(step)", "jit(evaluation_step)", "jit(traced_outputs)"


@pytest.fixture
def compiled():
    """How often each program was compiled since the test began, by its name."""
    counts: collections.Counter[str] = collections.Counter()

    def note(event: str, seconds: float, fun_name: str = "", **_) -> None:
        if event == LOWERED:
            counts[fun_name] += 1

    jax.monitoring.register_event_duration_secs_listener(note)
    yield counts
    jax.monitoring.unregister_event_duration_listener(note)


def at_batch(number: int, then, batches: type, monkeypatch) -> None:
    """Calls ``then`` when a run asks for that batch."""
    real = batches.__call__

    def call(self, index, *more):
        if index == number:
            then()
        return real(self, index, *more)

    monkeypatch.setattr(batches, "__call__", call)


@pytest.mark.slow
def test_pretraining_compiles_its_step_and_its_evaluation_once_a_start(prepared, tmp_path, compiled, monkeypatch):
    """12 steps over three epochs, with logs, evaluations and saves, cut off at batch 11 and started again."""
    words = (*tiny_pretraining.TINY, *WITHOUT_DROPOUT, f"--config.data={prepared}", f"--workdir={tmp_path / 'run'}")
    words = (*words, "--config.total_steps=12", "--config.evaluate_every=4", "--config.save_every=4")
    late: list[dict[str, int]] = []

    def crash():
        raise ConnectionAbortedError

    with monkeypatch.context() as patched:
        at_batch(8, lambda: late.append(dict(compiled)), Batches, patched)  # behind the first evaluation and save
        at_batch(11, crash, Batches, patched)
        with pytest.raises(ConnectionAbortedError):
            tiny_pretraining.run(*words)
    assert (compiled[TRAINING], compiled[EVALUATION]) == (1, 1)
    assert late == [compiled], "programs were compiled in later steps"
    compiled.clear()
    tiny_pretraining.run(*words)
    assert (tmp_path / "run" / "checkpoints" / "12").is_dir()
    assert (compiled[TRAINING], compiled[EVALUATION]) == (1, 1)


@pytest.mark.parametrize("packed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_fine_tuning_compiles_once_a_length_of_rows(tmp_path, compiled, packed):
    """Two epochs, four evaluations, texts that are short or long: packed rows have one shape; else there are two."""
    words = ["--config.text=review", "--config.label=liked", "--config.max_length=32", "--config.epochs=2"]
    words += [f"--config.packed={packed}", "--config.evaluations_per_epoch=2", f"--workdir={tmp_path / 'run'}"]
    for number, (setting, count) in enumerate({"data": 90, "validation": 40}.items()):
        reviews = review_table.reviews(count, number)
        for row in reviews[::15]:
            row["review"] = " ".join([row["review"]] * 4)
        words.append(f"--config.{setting}={review_table.write(tmp_path / f'{setting}.csv', reviews)}")
    # An earlier run in this process may have had the same shape.
    forward.compiled_outputs("float32").clear_cache()  # type: ignore[attr-defined]
    review_table.run(*review_table.QUICK, *words)
    shapes = 1 if packed else 2
    # Evaluations while it trains have the shapes of training, those of the rows at its end another.
    assert (compiled[TRAINING], compiled[PREDICTION]) == (shapes, shapes + 1)
