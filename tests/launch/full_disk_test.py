"""A full disk: one line, what was finished stays, and with more room the end is the same."""

import contextlib
import gc
import pathlib
import resource
import subprocess

import pytest

from bert.errors import RunError
from bert.store.prepare import PrepareSettings, prepare
from bert.store.reader import SPLITS, Store
from bert.training import run_directory
from launch import pretrain
from tests.launch.short_run import command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_device")]


@pytest.fixture(scope="module")
def whole(prepared, tmp_path_factory) -> bytes:
    """The weights that a run gives which nothing disturbs."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    pretrain.run(command(prepared, workdir))
    return (workdir / "model" / "model.safetensors").read_bytes()


@contextlib.contextmanager
def no_room(kind: str, kilobytes: int, folder: pathlib.Path):
    """A file system of that size at the folder, which is large at the end; or files of that size at most."""
    if kind == "files":
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes << 10, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return
    yield
    subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)


@pytest.fixture
def small_disk(tmp_path, request):
    """Makes a file system of so many kilobytes at a folder; the test skips where that is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(kilobytes: int) -> pathlib.Path:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", folder], check=False)
        if done.returncode:
            pytest.skip("needs the right to mount a file system")
        request.addfinalizer(lambda: subprocess.run(["umount", "-l", folder], check=True))
        return folder

    return mount


# How a checkpoint divides into files differs from run to run; its metadata has 37 KiB and the exported model 74 always.
@pytest.mark.parametrize(
    ("kind", "kilobytes"), [("disk", 16), ("disk", 200), ("disk", 500), ("files", 20), ("files", 40), ("files", 70)]
)
def test_a_full_disk(whole, prepared, tmp_path, capfd, caplog, small_disk, kind, kilobytes):
    """One line, what was finished stays, and with more room the run ends with the same bits."""
    folder = small_disk(kilobytes) if kind == "disk" else tmp_path
    workdir = folder / "run"
    with no_room(kind, kilobytes, folder):
        with pytest.raises(RunError, match=r"No space left|too large") as error:
            pretrain.run(command(prepared, workdir))
        assert "\n" not in str(error.value)
        gc.collect()  # what is left of Orbax's tasks would complain now
    assert "Traceback" not in capfd.readouterr().err
    finished = run_directory.newest_step(workdir)
    caplog.set_level("INFO", logger="absl")
    pretrain.run(command(prepared, workdir))
    assert (workdir / "model" / "model.safetensors").read_bytes() == whole
    assert not finished or f"checkpoints/{finished}" in caplog.text


@pytest.mark.parametrize("kilobytes", [4, 8, 16])
def test_a_full_disk_while_text_is_prepared(prepared, small_disk, kilobytes):
    """Nothing is left that looks finished, and with more room the folder has the same bytes."""
    folder = small_disk(kilobytes)
    corpus, vocab = prepared.parent / "a.txt", prepared.parent / "vocab.txt"
    settings = PrepareSettings(corpus=str(corpus), vocab=str(vocab), validation_share=0.1)
    with no_room("disk", kilobytes, folder), pytest.raises(RunError, match="No space left"):
        prepare(folder / "out", settings)
    assert not (folder / "out").exists()
    prepare(folder / "out", settings)
    for split in SPLITS:
        store, other = (Store.open(path, split, verify=True) for path in (folder / "out", prepared))
        assert store.fingerprint == other.fingerprint
