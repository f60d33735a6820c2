"""The manifest: a field of another type is refused by name, checksums are compared beside other work."""

import copy
import json
import random
import resource

import pytest

from bert.errors import InputError, RunError
from bert.store import prepared_folder
from bert.store.manifest import check_checksums_beside, read_manifest
from bert.store.prepare import PrepareSettings, prepare
from bert.store.reader import SPLITS, Store
from tests.bert.builders import SPECIAL, WORDS, stories

VALUES = (None, True, -1, 0, 7, 2**70, 1e300, "", "7", "../x", "\ud800", [], [1], {}, {"a": {}})


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "a.txt").write_text(stories(4))
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *WORDS, "."]))
    return prepare(folder / "out", PrepareSettings(str(folder / "a.txt"), str(folder / "vocab.txt"))).directory


@pytest.fixture
def manifest(prepared):
    """The manifest's values; the file is as it was at the end of the test."""
    before = (prepared / "manifest.json").read_text()
    values = json.loads(before)
    del values["sha256"]  # folders of earlier versions have none, so each value is checked
    yield values
    (prepared / "manifest.json").write_text(before)


def places(value, path=()):
    """Path of every value in the object."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def peak() -> int:
    """The most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def changed(manifest, path, change):
    result = copy.deepcopy(manifest)
    holder = result
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return result


def read_everything(folder) -> None:
    """All that reads a manifest."""
    for split in SPLITS:
        store = Store.open(folder, split)
        store.tokenizer  # noqa: B018
        store.read([0], [min(1, store.num_tokens)])
        assert len(store.fingerprint) == 64
    prepared_folder.report_of(folder).table()
    prepared_folder.is_finished(folder, {"corpus": "x"}, store.tokenizer, overwrite=True)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("vocab_size",), "26", "vocab_size"),
        (("vocab_size",), 27, "tokenizer"),
        (("word_boundaries",), 1, "word_boundaries"),
        (("word_boundaries",), True, r"train-00000\.words"),
        (("splits", "train", "tokens"), 1, "1 tokens in train"),
        (("splits", "train", "shards"), ["../elsewhere"], "shards of splits 'train'"),
        (("splits", "train", "shards"), [], "0"),
        (("files", "train-00000.tokens", "bytes"), -4, "bytes or sha256 of files 'train-00000.tokens'"),
        (("files", "train-00000.tokens"), None, "files 'train-00000.tokens'"),
        (("report", "tokens"), "9", "report"),
        (("report", "sources"), [1], "report"),
        ((), [], "list"),
    ],
)
def test_a_wrong_field_is_named(prepared, manifest, path, value, said):
    wrong = value if not path else changed(manifest, path, lambda holder, key: holder.__setitem__(key, value))
    (prepared / "manifest.json").write_text(json.dumps(wrong))
    with pytest.raises(InputError, match=said) as error:
        read_everything(prepared)
    assert str(error.value).startswith(str(prepared))
    assert "again" in str(error.value)
    assert "\n" not in str(error.value)


def test_checksums_are_compared_in_the_background(prepared):
    check_checksums_beside(prepared, read_manifest(prepared)).result(timeout=60)
    path = prepared / "train-00000.sentences"
    before = path.read_bytes()
    try:
        path.write_bytes(before[:-1] + b"\x01")
        with pytest.raises(InputError, match=r"00000.sentences: .*checksum"):
            check_checksums_beside(prepared, read_manifest(prepared)).result(timeout=60)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_mutated_manifests_end_in_one_line_or_are_read(prepared, manifest, count):
    """Values of other types, lost keys, other names, and bytes of the file itself; within a second and a gigabyte."""
    rng, every = random.Random(count), [path for path in places(manifest) if path]
    text, said, before = json.dumps(manifest).encode(), [], peak()
    for number in range(count):
        path, value = rng.choice(every), rng.choice(VALUES)
        match number % 4:
            case 0:
                content = bytearray(text)
                for _ in range(rng.randint(1, 4)):
                    content[rng.randrange(len(content))] = rng.randrange(256)
            case 1:
                content = json.dumps(changed(manifest, path, lambda holder, key: holder.pop(key))).encode()
            case _:
                mutated = changed(manifest, path, lambda holder, key: holder.__setitem__(key, value))  # noqa: B023
                content = json.dumps(mutated).encode()
        (prepared / "manifest.json").write_bytes(content)
        try:
            read_everything(prepared)
        except (InputError, RunError) as error:
            said.append(str(error))
    assert len(said) > count // 2
    assert not [line for line in said if "\n" in line]
    assert peak() - before < 1 << 20


@pytest.mark.usefixtures("manifest")
def test_each_flipped_bit_is_noticed(prepared):
    """Also in numbers and in names, which stay valid."""
    path, rng = prepared / "manifest.json", random.Random(0)
    before = path.read_bytes()
    for at in rng.sample([i for i, byte in enumerate(before) if not chr(byte).isspace()], 60):
        path.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
        with pytest.raises(InputError, match=r"manifest.json.*overwrite=True"):
            read_manifest(prepared)
