"""What all tests share: no network, a compilation cache, and the folder of reference data where it exists."""

import functools
import gc
import logging
import os
import pathlib
from collections.abc import Callable, Iterator

from tests import xla_flags

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CHECKOUT / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Eight devices for the tests of sharding; without optimizations, for compiling is most of what tests do.
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count=8 {xla_flags.FAST}")

import pytest  # noqa: E402  (the environment must be set before jax is imported)


def pytest_collection_finish() -> None:
    """What is imported stays out of garbage collections, and these are rarer: they took a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture(scope="session")
def shared() -> pathlib.Path:
    """Folder of reference values and real data beside the checkout; the test skips where it is missing."""
    folder = CHECKOUT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"needs the reference data in {folder.name}/ beside the checkout")
    return folder


@pytest.fixture(scope="session", autouse=True)
def peak_measured_once():
    """The matrix peak of this machine, which the first step of a run measures: once a process, for it takes seconds."""
    from bert.training import arithmetic

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "peak_flops", functools.cache(arithmetic.peak_flops))
        yield


@pytest.fixture(autouse=True)
def no_handlers_of_other_tests() -> Iterator[None]:
    """A command that a test runs in this process logs to that test's standard error, which is closed behind it."""
    root = logging.getLogger()
    before = set(root.handlers)
    yield
    for handler in set(root.handlers) - before:
        root.removeHandler(handler)


@pytest.fixture
def terminal() -> Iterator[tuple[pathlib.Path, int]]:
    """A device to write to and the descriptor that reads it; no file can take its place, whatever a test does."""
    reading, writing = os.openpty()
    yield pathlib.Path(os.ttyname(writing)), reading
    os.close(reading)
    os.close(writing)


@pytest.fixture
def killed_writer() -> Callable[..., pathlib.Path]:
    """Makes what a process leaves beside the target that is killed while it writes it (bert/files.py)."""

    def leave(target: pathlib.Path, **parts: pathlib.Path) -> pathlib.Path:
        place = target.with_name(f".{target.name}.unfinished-0123456789abcdef")
        place.mkdir()
        (place / "mark").write_text(f"bert-jax is writing {target.name}\n")
        for part, folder in parts.items():
            folder.rename(place / part)
        return place

    return leave
