"""Damage to what lies on disk: named in one line, set aside, or harmless with the same bits in the end."""

import gc
import json
import pathlib
import random
import shutil
from collections.abc import Callable

import jax
import numpy as np
import pytest

from bert.data.batches import Batches
from bert.errors import InputError, RunError
from bert.store.manifest import check_checksums_beside
from bert.store.prepare import PrepareSettings, prepare
from bert.store.reader import SPLITS, Store
from bert.training import trackers
from bert.training.checkpoint import newest_params
from launch import pretrain
from tests.launch.short_run import STEPS, command

pytestmark = [
    pytest.mark.usefixtures("one_device"),
    # TensorStore's threads complain, now and then before anything listens, that Orbax closed its event loop.
    pytest.mark.filterwarnings("ignore:Exception ignored in. None:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def whole(prepared, tmp_path_factory) -> bytes:
    """The weights that a run gives which nothing disturbs."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    pretrain.run(command(prepared, workdir))
    return (workdir / "model" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def stopped(prepared, tmp_path_factory) -> pathlib.Path:
    """The same run, killed in step 6: checkpoints 2 and 4, five lines of training in the log."""
    workdir, make = tmp_path_factory.mktemp("stopped") / "run", Batches.__call__

    def killed(self, index, rows=slice(None)):
        if index == STEPS - 1:
            raise ConnectionAbortedError
        return make(self, index, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batches, "__call__", killed)
        with pytest.raises(ConnectionAbortedError):
            pretrain.run(command(prepared, workdir))
    return workdir


@pytest.mark.slow
@pytest.mark.parametrize("module", ["tests.bert.training.trackers.recording", "tests.no_such_module"])
def test_a_tracker_changes_no_bit_whether_it_works_or_not(prepared, whole, tmp_path, monkeypatch, module):
    works = module.endswith("recording")
    monkeypatch.setitem(trackers.SERVICES, "tests", ("recording", module))  # "tests" can be imported
    monkeypatch.setattr(trackers, "SECONDS_AT_END", 30 if works else 1)
    monkeypatch.setattr(trackers, "SECONDS_TO_START", 0)
    pretrain.run([*command(prepared, tmp_path / "run"), "--config.tracker=tests"])
    assert (tmp_path / "run" / "model" / "model.safetensors").read_bytes() == whole
    lines = (tmp_path / "run" / "recorded.jsonl").read_text() if works else ""
    assert lines.count('"split": "train"') == works * STEPS


# --- damage -----------------------------------------------------------------------------------------------------


def put(name: str, content: str | bytes) -> Callable[[pathlib.Path], None]:
    """A file of this content, whatever stood there."""

    def damage(run: pathlib.Path) -> None:
        gone(name)(run)
        (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return damage


def folder(name: str, inside: str = "") -> Callable[[pathlib.Path], None]:
    """A folder, with a file in it or none, whatever stood there."""

    def damage(run: pathlib.Path) -> None:
        gone(name)(run)
        (run / name).mkdir(parents=True)
        if inside:
            (run / name / inside).write_text("mine")

    return damage


def gone(name: str) -> Callable[[pathlib.Path], None]:
    def damage(run: pathlib.Path) -> None:
        if (run / name).is_dir():
            shutil.rmtree(run / name)
        else:
            (run / name).unlink(missing_ok=True)

    return damage


def line(content: bytes) -> Callable[[pathlib.Path], None]:
    """A line in the middle of the log."""

    def damage(run: pathlib.Path) -> None:
        lines = (run / "metrics.jsonl").read_bytes().splitlines(keepends=True)
        (run / "metrics.jsonl").write_bytes(b"".join([*lines[:2], content + b"\n", *lines[2:]]))

    return damage


def setting(name: str, *value) -> Callable[[pathlib.Path], None]:
    """Another value in config.json, or none."""

    def damage(run: pathlib.Path) -> None:
        values = json.loads((run / "config.json").read_text())
        values.pop(name)
        (run / "config.json").write_text(json.dumps(values | ({name: value[0]} if value else {})))

    return damage


def encoder(**changes) -> Callable[[pathlib.Path], None]:
    def damage(run: pathlib.Path) -> None:
        values = json.loads((run / "config.json").read_text())
        (run / "config.json").write_text(json.dumps(values | {"encoder": values["encoder"] | changes}))

    return damage


def cut(name: str) -> Callable[[pathlib.Path], None]:
    def damage(run: pathlib.Path) -> None:
        (run / name).write_bytes((run / name).read_bytes()[:-20])

    return damage


META = "checkpoints/4/meta/metadata"
REFUSED = {
    "settings: a list": put("config.json", "[]"),
    "settings: empty": put("config.json", "{}"),
    "settings: null": put("config.json", "null"),
    "settings: no byte": put("config.json", b""),
    "settings: cut": cut("config.json"),
    "settings: not UTF-8": put("config.json", b'{"seed": "\xff"}'),
    "settings: 10,000 levels": put("config.json", "[" * 10_000 + "]" * 10_000),
    "settings: 10,000 levels in an object": put("config.json", '{"encoder": ' * 10_000 + "1" + "}" * 10_000),
    "settings: a folder": folder("config.json"),
    "settings: gone": gone("config.json"),
    "settings: no encoder": setting("encoder"),
    "settings: encoder null": setting("encoder", None),
    "settings: encoder a list": setting("encoder", []),
    "settings: encoder empty": setting("encoder", {}),
    "settings: encoder unlike the checkpoint": encoder(num_hidden_layers=2),
    "settings: width unlike the checkpoint": encoder(hidden_size=64),
    "settings: width a text": encoder(hidden_size="32"),
    "settings: width a billion billions": encoder(hidden_size=10**18, num_attention_heads=1),
    "settings: a billion layers": encoder(num_hidden_layers=10**9),
    "settings: activation a list": encoder(hidden_act=["gelu"]),
    "settings: data a number": setting("data_sha256", 7),
    "settings: another seed": setting("seed", "0"),
    "log: a folder": folder("metrics.jsonl"),
    "board: a file": put("tensorboard", "mine"),
    "lock: a folder": folder("lock"),
    "checkpoints: a file": put("checkpoints", "mine"),
    "model: a file": put("model", "mine"),
    "model: somebody's files": folder("model", "thesis.tex"),
}
HARMLESS = {
    "settings: a byte order mark": lambda run: (run / "config.json").write_text(
        "\ufeff" + (run / "config.json").read_text()
    ),
    "log: a bad byte": line(b'{"step": 1, "split": "\xff"}'),
    "log: a number": line(b"7"),
    "log: a list": line(b"[1]"),
    "log: no step": line(b'{"split": "train"}'),
    "log: a step in words": line(b'{"step": "one", "split": "train"}'),
    "log: no split": line(b'{"step": 1}'),
    "log: 100,000 levels": line(b"[" * 100_000),
    "log: gone": gone("metrics.jsonl"),
    "log: empty": put("metrics.jsonl", ""),
    "log: cut": cut("metrics.jsonl"),
    "board: gone": gone("tensorboard"),
    "lock: gone": gone("lock"),
    "tokenizer: gone": gone("tokenizer.json"),
    "tokenizer: not JSON": put("tokenizer.json", "{"),
    "checkpoints: an empty one": folder("checkpoints/99999"),
    "checkpoints: a foreign one": folder("checkpoints/99999", "notes"),
    "checkpoints: other names": folder("checkpoints/best", "notes"),
    "checkpoints: a name in other digits": folder("checkpoints/\u0663"),
    "checkpoints: a file with a number": put("checkpoints/12", "mine"),
    "checkpoints: all gone": gone("checkpoints"),
    "checkpoint: empty": folder("checkpoints/4"),
    "checkpoint: without arrays": gone("checkpoints/4/state"),
    "checkpoint: a file for arrays": put("checkpoints/4/state", "mine"),
    "meta: gone": gone(META),
    "meta: a folder": folder(META),
    "meta: empty object": put(META, "{}"),
    "meta: a list": put(META, "[]"),
    "meta: null sums": put(META, '{"totals": null, "best": null}'),
    "meta: sums of texts": put(META, '{"totals": {"tokens": "many"}, "best": null}'),
    "meta: best a text": put(META, '{"totals": {}, "best": "mine"}'),
    "meta: best of other fields": put(META, '{"totals": {}, "best": {"steps": 4}}'),
    "meta: 10,000 levels": put(META, "[" * 10_000),
    "meta: cut": cut(META),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*REFUSED, *HARMLESS])
def test_a_damaged_run_directory(stopped, whole, prepared, tmp_path, name):
    """The stopped run is copied, damaged and started again."""
    workdir = shutil.copytree(stopped, tmp_path / "run")
    (REFUSED | HARMLESS)[name](workdir)
    if name in REFUSED:
        with pytest.raises((InputError, RunError)) as error:
            pretrain.run(command(prepared, workdir))
        assert "\n" not in str(error.value)
        assert str(tmp_path) in str(error.value)
    else:
        pretrain.run(command(prepared, workdir))
        assert (workdir / "model" / "model.safetensors").read_bytes() == whole
        steps = [json.loads(row)["step"] for row in (workdir / "metrics.jsonl").read_text().splitlines()]
        assert steps == sorted(steps)
        assert steps[-1] == STEPS


def flipped(path: pathlib.Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    bit = rng.randrange(8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def files_in(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


@pytest.mark.slow
def test_sixty_flipped_bits_of_a_checkpoint(stopped, whole, prepared, tmp_path, capfd):
    """In all files of the newest one in turn, twice as often in those with arrays; the run ends with the same bits."""
    rng, newest, aside = random.Random(0), pathlib.Path("checkpoints", "4"), 0
    files = files_in(stopped / newest)
    files += [path for path in files if "d" in path.parts]
    for number in range(60):
        workdir = shutil.copytree(stopped, tmp_path / str(number))
        flipped(workdir / newest / files[number % len(files)], rng)
        step, params = newest_params(workdir / "checkpoints")
        assert_equal(params, newest_params(stopped / "checkpoints")[1] if step == 4 else before_it(stopped, tmp_path))
        pretrain.run(command(prepared, workdir))
        assert (workdir / "model" / "model.safetensors").read_bytes() == whole, files[number % len(files)]
        aside += (workdir / "checkpoints.damaged" / "4").is_dir()
        shutil.rmtree(workdir)
    assert aside > 5  # how many files hold what is read differs from run to run
    gc.collect()  # what is left of Orbax's tasks would complain now
    assert "Traceback" not in capfd.readouterr().err


def before_it(stopped: pathlib.Path, tmp_path: pathlib.Path):
    """Parameters of the checkpoint before the newest."""
    if not (tmp_path / "before").exists():
        shutil.copytree(stopped / "checkpoints" / "2", tmp_path / "before" / "2")
    return newest_params(tmp_path / "before")[1]


def assert_equal(one, other) -> None:
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_sixty_flipped_bits_of_a_prepared_folder(prepared, tmp_path):
    """In all files in turn: named, or all that a run reads is as it was; prepared again, the folder is whole."""
    rng, files, named = random.Random(1), files_in(prepared), 0
    want = read_all(prepared)
    settings = PrepareSettings(
        corpus=str(prepared.parent / "a.txt"), vocab=str(prepared.parent / "vocab.txt"), validation_share=0.1
    )
    for number in range(60):
        folder, name = shutil.copytree(prepared, tmp_path / str(number)), files[number % len(files)]
        flipped(folder / name, rng)
        try:
            assert read_all(folder) == want
        except InputError as error:
            assert str(folder) in str(error)  # noqa: PT017
            named += 1
            if name.name != "manifest.json":
                assert str(folder / name) in str(error)  # noqa: PT017
                assert not prepare(folder, settings).was_finished
            else:
                prepare(folder, settings, overwrite=True)
            assert read_all(folder) == want
        shutil.rmtree(folder)
    assert named > 50


def read_all(folder: pathlib.Path) -> list:
    """What a run reads of a prepared folder."""
    found: list = []
    for split in SPLITS:
        store = Store.open(folder, split)
        check_checksums_beside(folder, store.manifest).result()
        arrays = [array.tobytes() for shard in store.shards for array in shard[1:4]]
        found += [store.fingerprint, store.tokenizer.fingerprint, store.has_word_boundaries, arrays]
    return found
