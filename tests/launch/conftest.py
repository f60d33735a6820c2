"""What tests of commands share."""

import functools
import pathlib
import random
import subprocess
import sys
from collections.abc import Callable

import jax
import pytest

from bert.store.prepare import PrepareSettings, prepare
from bert.training import sharding
from tests.launch.review_table import reviews, write

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
WORDS = ["keeper", "lamp", "stairs", "sea", "storm", "night", "ship", "rock", "wind", "light", "gull", "rope", "sail"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", ".", *WORDS]


@pytest.fixture
def two_processes(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a training command in one process with workdir one, then in two with workdir two; what the latter print."""

    def run(name, *words):
        environment = {"PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu", "HOME": str(tmp_path)}

        def start(module, *words):
            command = [sys.executable, "-m", module, *words]
            return subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=500)

        alone = start(f"launch.{name}", *words, f"--workdir={tmp_path / 'one'}")
        assert alone.returncode == 0, alone.stderr
        two = start("launch.local_processes", "--processes=2", name, *words, f"--workdir={tmp_path / 'two'}")
        assert two.returncode == 0, two.stderr
        return two

    return run


@pytest.fixture(scope="module")
def one_device():
    """On one of the eight devices: the step compiles in a third of the time."""
    made = functools.partial(sharding.make_mesh, devices=jax.devices()[:1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharding, "make_mesh", made)
        yield


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> pathlib.Path:
    """Forty documents of made-up sentences over twenty tokens, prepared, a tenth of them held out."""
    folder = tmp_path_factory.mktemp("text")
    return prepare(folder / "prepared", write_text(folder)).directory


def write_text(folder: pathlib.Path) -> PrepareSettings:
    """Those documents as a file and their vocabulary, and the settings to prepare them."""
    rng = random.Random(0)
    sentence = lambda: f"the {rng.choice(WORDS)} the {rng.choice(WORDS)} {rng.choice(WORDS)} ."  # noqa: E731
    documents = ["\n".join(sentence() for _ in range(rng.randint(2, 9))) for _ in range(40)]
    (folder / "a.txt").write_text("\n\n".join(documents))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    return PrepareSettings(corpus=str(folder / "a.txt"), vocab=str(folder / "vocab.txt"), validation_share=0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """Made-up reviews: 160 in train.csv, 60 in held.csv."""
    out = tmp_path_factory.mktemp("tables")
    write(out / "train.csv", reviews(160, 0))
    write(out / "held.csv", reviews(60, 1))
    return out


@pytest.fixture(scope="module")
def table(folder) -> tuple[str, ...]:
    """The settings that name them."""
    return (f"--config.data={folder / 'train.csv'}", "--config.text=review", "--config.label=liked")
