"""TensorFlow checkpoints read back as they were written; every fault is told in one line that names it."""

import json
import mmap
import shutil

import google_crc32c
import ml_dtypes
import numpy as np
import pytest

from bert.errors import InputError
from bert.interop.formats import sorted_table
from bert.interop.formats.tensor_bundle import open_bundle, read_index
from tests.bert.interop.formats.bundle_writer import (
    BYTES,
    INTEGER,
    MAGIC,
    assert_same,
    entry,
    header,
    masked,
    message,
    varint,
    write_checkpoint,
)  # fmt: skip
from tests.bert.refusals import refused

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
VARIABLES = {
    "bert/embeddings/word_embeddings": np.arange(12, dtype=np.float32).reshape(4, 3),
    "bert/flags": np.array([True, False, True]),  # three bytes: what follows is not aligned
    "bert/pooler/dense/bias": np.array([-1.5, 2.25, np.inf]),
    "bert/pooler/dense/kernel": np.linspace(-1, 1, 6, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(2, 1, 3),
    "empty": np.zeros((0, 5), np.int32),
    "global_step": np.array(1_000_000_007, np.int64),
    "half": np.array([0.5, -3], np.float16),
    "int16": np.array([[-300]], np.int16),
    "int32": np.array([-(2**31), 2**31 - 1], np.int32),
    "int8": np.array([-128, 127], np.int8),
    "uint8": np.array([0, 255], np.uint8),
    "größe": np.float32([7]),
}


@pytest.fixture
def prefix(tmp_path):
    return tmp_path / "bert_model.ckpt"


@pytest.fixture
def written(prefix):
    """written(shards=..., more rows, table_of's arguments): the prefix of a checkpoint of `VARIABLES`."""

    def write(*more, shards=1, change=lambda rows: rows, **options):
        return write_checkpoint(prefix, VARIABLES, *more, shards=shards, change=change, **options)

    return write


def complaint(prefix, reason=None):
    """The one line with which a checkpoint is refused on opening."""
    with pytest.raises(InputError, match=reason) as caught:
        open_bundle(prefix)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(prefix))
    assert ";" in text, "no way out"
    return text


@pytest.mark.parametrize("per_block", [1, 4, 100])
@pytest.mark.parametrize("snappy", [False, True])
@pytest.mark.parametrize("shards", [1, 3, 20])
def test_what_was_written_is_read(written, per_block, snappy, shards):
    """Every type, no axes, no elements, unaligned data, empty data files, one block or many, plain and compressed."""
    tensors = open_bundle(written(shards=shards, per_block=per_block, snappy=snappy))
    assert_same(tensors, VARIABLES)
    assert len(tensors) == len(VARIABLES)
    assert "other" not in tensors
    with pytest.raises(KeyError):
        tensors["other"]


def test_variables_are_views_that_cannot_be_written(written):
    tensors = open_bundle(written())
    for name in VARIABLES:
        view = tensors[name]
        assert not view.flags.writeable
        while isinstance(view.base, np.ndarray):
            view = view.base
        assert name == "empty" or isinstance(view.base.obj, mmap.mmap), "a copy, and not the file's own bytes"  # type: ignore[attr-defined]


def test_data_is_read_when_it_is_asked_for_and_compared_once(written, monkeypatch):
    prefix = written()
    compared = []
    value = google_crc32c.value
    monkeypatch.setattr(google_crc32c, "value", lambda data: compared.append(len(data)) or value(data))
    tensors = open_bundle(prefix)
    assert "half" in tensors
    assert tensors.entries["half"].shape == (2,)
    opening = len(compared)
    assert opening == 5, "four blocks of rows and one that lists them"
    for _ in range(3):
        tensors["half"]
    assert compared[opening:] == [4]


def test_damaged_data_is_refused_by_name_and_only_there(written):
    prefix = written()
    path = prefix.with_name(f"{prefix.name}.data-00000-of-00001")
    data = bytearray(path.read_bytes())
    data[5] ^= 64
    path.write_bytes(data)
    tensors, table = open_bundle(prefix), "bert/embeddings/word_embeddings"
    for _ in range(2):  # nor the second time
        with pytest.raises(InputError) as caught:
            tensors[table]
        stored, found = masked(VARIABLES[table].tobytes()), masked(data[:48])
        for part in (str(path), table, f"{stored:#010x}", f"{found:#010x}", "download"):
            assert part in str(caught.value)
    rest = {name: value for name, value in VARIABLES.items() if name != table}
    assert_same({name: tensors[name] for name in rest}, rest)


@pytest.mark.parametrize("snappy", [False, True])
def test_any_damage_to_an_index_is_refused_or_changes_nothing(written, snappy):
    """Each byte changed, each length cut to: one line, or (in bytes that say nothing) the same variables."""
    prefix = written(snappy=snappy)
    path = prefix.with_name(f"{prefix.name}.index")
    whole, expected = path.read_bytes(), read_index(path)
    harmless = 0
    for i in range(len(whole)):
        path.write_bytes(whole[:i])
        with pytest.raises(InputError):
            read_index(path)
        path.write_bytes(whole[:i] + bytes([whole[i] ^ (1 << i % 8)]) + whole[i + 1 :])
        try:
            found = read_index(path)
        except InputError as error:
            line = str(error)
        else:
            assert found == expected
            harmless += 1
            continue
        assert line.startswith(f"{path}: ")
        assert "\n" not in line
    assert harmless < 60, "only the footer's padding and the table's own, empty, metadata say nothing"


def test_data_that_is_cut_short_is_refused_on_opening(written):
    prefix = written(shards=3)
    path = prefix.with_name(f"{prefix.name}.data-00001-of-00003")
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert complaint(prefix).startswith(f"{path}: '")
    path.unlink()
    assert complaint(prefix).startswith(f"{path}: no such file")


FAULTY_ENTRIES = {
    "beyond the data file": (entry(1, [2], 0, 10**6, 8, 0), "'lie' should end at byte 1000008, the file ends at"),
    "offset near 2^63": (entry(1, [2], 0, 2**63 - 1, 8, 0), "'lie' should end at byte 9223372036854775815"),
    "negative offset": (entry(1, [2], 0, -8, 8, 0), "'lie' has 8 bytes at byte -8 of data file 0"),
    "negative size": (entry(7, [], 0, 0, -8, 0), "'lie' has -8 bytes"),
    "size of another shape": (entry(1, [2], 0, 0, 12, 0), r"'lie' has 12 bytes, but shape \[2\] of float32"),
    "negative axis": (entry(1, [-1, -2], 0, 0, 8, 0), r"'lie' has the impossible shape \[-1, -2\]"),
    "negative axis of a string": (entry(7, [-1], 0, 0, 8, 0), "'lie' has the impossible shape"),
    "enormous": (entry(1, [2**40, 2**40], 0, 0, 8, 0), "'lie' has the impossible shape"),
    "nothing, but enormous": (entry(1, [0, 2**62], 0, 0, 0, 0), "'lie' has the impossible shape"),
    "too many axes": (entry(1, [1] * 65, 0, 0, 4, 0), "'lie' has 65 axes"),
    "no known shape": (message((1, INTEGER, 1), (2, BYTES, message((3, INTEGER, 1)))), "'lie' has .* not known"),
    "a data file too many": (entry(1, [], 1, 0, 4, 0), r"'lie' .* of data file 1 \(there are 1\)"),
    "a data file before all": (entry(1, [], -1, 0, 4, 0), "'lie' .* of data file -1"),
    "pieces": (entry(1, [], 0, 0, 4, 0, (7, BYTES, b"")), "'lie' was saved in pieces"),
    "message cut short": (entry(1, [], 0, 0, 4, 0)[:-1], "cut short"),
    "number cut short": (b"\x08\x80", "within a number"),
    "number of 65 bits": (b"\x08" + b"\xff" * 9 + b"\x02", "more than 64 bits"),
    "number without an end": (b"\x08" + b"\x80" * 99 + b"\x00", "more than 64 bits"),
    "length near 2^64": (b"\x12" + varint(2**64 - 1), "cut short"),
    "no such wire type": (b"\x0b", "wire type 3"),
}


FAULTY_KEYS = {
    "not UTF-8": (b"lie\xff", entry(1, [], 0, 0, 4, 0), r"'lie\\\\xff' is no name"),
    "two lines": (b"lie\nlie", entry(1, [-1], 0, 0, 4, 0), r"'lie\\nlie' has the impossible shape"),
    "a piece": (b"\0lie\0\1\xff", entry(1, [], 0, 0, 4, 0), "'lie' was saved in pieces"),
    "there twice": (b"half", entry(1, [], 0, 0, 4, 0), "'half' comes after 'half'"),
}


FAULTY_HEADERS = {
    "absent": (lambda rows: rows[1:], "no header"),
    "empty table": (lambda rows: [], "no header"),
    "big-endian": (lambda rows: [(b"", header(endianness=1)), *rows[1:]], "big-endian.*; save it again"),
    "of the future": (lambda rows: [(b"", header(min_consumer=2)), *rows[1:]], "version 2.*; save it with an older"),
    "no data files": (lambda rows: [(b"", header(shards=0)), *rows[1:]], "names 0 data files"),
    "fewer than no data files": (lambda rows: [(b"", header(shards=-1)), *rows[1:]], "names -1 data files"),
    "2^31 data files": (lambda rows: [(b"", header(shards=2**31 - 1)), *rows[1:]], "no such file.*2147483647"),
    "sorted the other way": (lambda rows: [rows[0], *rows[:0:-1]], "'int8' comes after 'uint8', but names are sorted"),
}


FAULTS = {
    **{fault: ([(b"lie", lie)], {}, reason) for fault, (lie, reason) in FAULTY_ENTRIES.items()},
    **{fault: ([(key, lie)], {}, reason) for fault, (key, lie, reason) in FAULTY_KEYS.items()},
    **{fault: ([], {"change": change}, reason) for fault, (change, reason) in FAULTY_HEADERS.items()},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_table_says_is_not_believed_for_its_right_checksums(written, fault):
    more, options, reason = FAULTS[fault]
    complaint(written(*more, **options), reason)


def test_names_that_would_fill_the_memory_are_complaint(written, monkeypatch):
    """Each row repeats a name of a kilobyte in five bytes of the file; with longer names it would be gigabytes."""
    monkeypatch.setattr(sorted_table, "_MAX_NAMES", 2**16)
    long = [(b"x" * 2**10 + bytes([97 + i // 26, 97 + i % 26]), entry(7, [], 0, 0, 0, 0)) for i in range(70)]
    assert len(open_bundle(written(*long[:60], per_block=100))) == 60 + len(VARIABLES)
    complaint(written(*long, per_block=100), "more than 65536 bytes together")


def test_files_that_are_absent_or_no_checkpoint(written, prefix, tmp_path):
    assert "name a checkpoint by the part before .index" in complaint(prefix)
    (tmp_path / "other.ckpt.index").write_bytes(b"")
    for wrong in (prefix, tmp_path, tmp_path / "other.ckpt.index"):
        assert f"such as {tmp_path}/other.ckpt" in complaint(wrong)
    assert "ends in nothing" in complaint(tmp_path / "other.ckpt")
    (tmp_path / "other.ckpt.index").write_bytes(b"no table" * 10)
    assert f"ends in {b'no table'.hex()}, not 57fb808b247547db" in complaint(tmp_path / "other.ckpt")
    (tmp_path / "other.ckpt.index").write_bytes(bytes(8) + MAGIC)
    assert "reaches beyond the table of 16 bytes" in complaint(tmp_path / "other.ckpt")
    index = written().with_name(f"{prefix.name}.index")
    assert "no such file" in complaint(index), "given with its ending, the index is not taken for a V1 checkpoint"
    index.rename(prefix)
    assert "V1 format" in complaint(prefix)


def test_strings_and_resources_are_refused_when_they_are_asked_for(written):
    """So that a caller can tell a TF2 object-based checkpoint by its graph, and still read what is beside it."""
    more = [(OBJECT_GRAPH.encode(), entry(7, [], 0, 3, 9, 0)), (b"table", entry(20, [2], 0, 0, 0, 0))]
    tensors = open_bundle(written(*more))
    assert OBJECT_GRAPH in tensors
    assert OBJECT_GRAPH in list(tensors)
    assert_same({name: tensors[name] for name in VARIABLES}, VARIABLES)
    for name, kind in ((OBJECT_GRAPH, "7 (string)"), ("table", "20 (resource)")):
        with refused("data-00000-of-00001", name, kind):
            tensors[name]


def hugging_face_name(name):
    """tiny_bert's name of a variable, and whether its matrix is turned there."""
    renamed = name.replace("layer_", "layer.").replace("/", ".").replace("gamma", "weight").replace("beta", "bias")
    renamed = renamed.replace("output_bias", "bias").replace("output_weights", "weight")
    if renamed.endswith("embeddings"):
        renamed += ".weight"
    return renamed.replace("kernel", "weight"), renamed.endswith("kernel")


def renamed_and_turned(tensors, slots=()):
    """The weights as tiny_bert's own file has them."""
    found = {}
    for name in set(tensors) - set(slots):
        renamed, turned = hugging_face_name(name)
        found[renamed] = tensors[name].T if turned else tensors[name]
    return found


def test_a_checkpoint_of_tensorflow(golden, tiny_tensors):
    """What TensorFlow's Saver wrote of the tiny model, in two shards, is that model, bit for bit."""
    assert_same(renamed_and_turned(open_bundle(golden / "tiny_bert_tf1" / "bert_model.ckpt")), tiny_tensors)


@pytest.mark.parametrize("kind", ["plain", "snappy"])
def test_tensorflows_own_checkpoints(shared, tiny_tensors, tmp_path, kind):
    """The same with the optimizer's slots, and with a compressed index."""
    folder = shared / "golden" / "tf1" / "tiny_bert_tf1"
    for path in folder.glob("bert_model.ckpt.*"):
        shutil.copy(path, tmp_path)
    if kind == "snappy":
        (tmp_path / "bert_model.ckpt.index").unlink()
        shutil.copy(folder / "bert_model_snappy.ckpt.index", tmp_path / "bert_model.ckpt.index")
    tensors = open_bundle(tmp_path / "bert_model.ckpt")
    slots = {name for name in tensors if name.endswith(("/adam_m", "/adam_v")) or name == "global_step"}
    assert len(slots) == 2 * len(tiny_tensors) + 1
    assert_same(renamed_and_turned(tensors, slots), tiny_tensors)
    for name in slots - {"global_step"}:
        assert tensors[name].shape == tensors[name.rpartition("/")[0]].shape


def test_a_checkpoint_of_another_project(shared):
    folder = shared / "golden" / "tf1" / "keras_bert_fixture"
    with np.load(folder / "expected.npz") as stored:
        expected = {n[4:].replace("|", "/"): stored[n] for n in stored.files if n.startswith("var|")}
    tensors = open_bundle(folder / "bert_model.ckpt")
    slots = [name for name in tensors if name.endswith(("/adam_m", "/adam_v"))]
    assert all(np.isfinite(tensors[name]).all() for name in slots)
    assert_same({name: tensors[name] for name in tensors if name not in slots}, expected)


def test_the_index_of_a_published_model(shared):
    path = shared / "golden" / "tf1" / "google_chinese_L-12_H-768_A-12.index"
    expected = json.loads(path.with_suffix(".index.json").read_text())
    num_shards, entries = read_index(path)
    assert num_shards == expected["shards"]
    fields = {"shape": "shape", "dtype": "dtype", "offset": "offset", "size": "size", "crc32c_masked": "checksum"}
    for name, variable in entries.items():
        values = {field: getattr(variable, ours) for field, ours in fields.items()}
        assert {**values, "shape": list(variable.shape)} == expected["entries"].pop(name), name
    assert expected["entries"] == {}
    with refused("no such file"):
        open_bundle(path.with_suffix(""))
