"""The containers of PyTorch files: what torch.save does not write is refused, whatever the directory inside says."""

import collections
import pickle
import struct
import zipfile

import pytest

from bert.interop.formats.torch_file import open_torch
from tests.bert.interop.torch_writer import MAGIC, NUMBERS, STORAGES, assert_equal, assert_refused, pickled, tensor


def test_archives_that_torch_does_not_write(write_torch, tmp_path):
    def changed(change, compression=zipfile.ZIP_STORED):
        whole = write_torch("archive", {"w": tensor()})
        path = tmp_path / "changed.bin"
        with zipfile.ZipFile(whole) as old, zipfile.ZipFile(path, "w", compression) as new:
            for name, data in change({entry.filename: old.read(entry) for entry in old.infolist()}):
                new.writestr(name, data)
        return path

    def without(name):
        return lambda entries: [(key, data) for key, data in entries.items() if key != name]

    assert_equal(open_torch(changed(without("archive/byteorder")))["w"], NUMBERS.reshape(2, 3))
    assert_equal(open_torch(write_torch("archive", {"w": tensor()}, prefix="model.1"))["w"], NUMBERS.reshape(2, 3))
    assert_refused(changed(without("archive/data.pkl")), "0 entries */data.pkl")
    assert_refused(changed(without("archive/data/0")), "no entry for storage 0")
    assert_refused(changed(lambda e: [*e.items(), ("b/data.pkl", e["archive/data.pkl"])]), "2 entries */data.pkl")
    assert_refused(changed(lambda e: list(e.items()), zipfile.ZIP_DEFLATED), "archive/byteorder is compressed")
    assert_refused(write_torch("archive", {"w": tensor()}, little=False), "big-endian")
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = changed(lambda e: [*e.items(), ("archive/data/0", bytes(24))])
    assert_refused(path, "two entries of one name")


def test_an_archive_whose_directory_lies(write_torch):
    """Offsets and sizes in the directory that do not lead to the entry."""
    path = write_torch("archive", {"w": tensor()})
    whole = path.read_bytes()
    entry = whole.rindex(b"PK\1\2")  # that of archive/data/0, the last one
    for at, value, words in [
        (42, 0, "archive/data/0 is not where"),
        (42, 1, "archive/data/0 is not where"),
        (42, len(whole) - 9, "unpack"),
        (42, 0x7FFFFFFF, "error"),
        (24, 0x7FFFFFFF, "archive/data/0 is not where"),
        (24, 20, "has 20 bytes for it"),
        (8, 1, "encrypted"),
    ]:
        field = struct.pack("<H" if at == 8 else "<I", value)
        path.write_bytes(whole[: entry + at] + field + whole[entry + at + len(field) :])
        assert_refused(path, words)
    path.write_bytes(whole.replace(b"PK\3\4", b"PK\3\5").replace(b"PK\3\5", b"PK\3\4", 2))
    assert_refused(path, "archive/data/0 is not where")
    # Offsets count from where the directory says that it is: this puts the last entry before the file's first byte.
    shifted = bytearray(whole)
    places = [at + 42 for at in range(len(whole)) if whole[at : at + 4] == b"PK\1\2" and at != entry]
    for at in [*places, len(whole) - 6]:
        shifted[at : at + 4] = struct.pack("<I", int.from_bytes(whole[at : at + 4], "little") + len(whole))
    path.write_bytes(shifted)
    assert_refused(path, "cannot be read")


def test_streams_that_torch_does_not_write(write_torch):
    held = {"w": tensor(container="stream")}
    assert_refused(write_torch("stream", held, little=False), "big-endian")
    assert_refused(write_torch("stream", held, {"0": (5, NUMBERS.tobytes())}), "storage 0 has 6 elements, and 5")
    assert_refused(write_torch("stream", held, {"0": (6, bytes(25))}), "1 bytes after its last storage")
    assert_refused(write_torch("stream", held, {"1": (6, bytes(24))}), "other storages")
    assert_refused(write_torch("stream", held, STORAGES | {"1": (0, b"")}), "other storages")
    count = 1 << 62
    huge = {"w": tensor(container="stream", count=count)}
    assert_refused(write_torch("stream", huge, {"0": (count, NUMBERS.tobytes())}), f"ends before the {count} elements")
    twice = {"w": tensor(container="stream"), "v": tensor(container="stream", kind="IntStorage")}
    assert_refused(write_torch("stream", twice), "storage 0 in two ways")
    path = write_torch("stream", held)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(pickled(MAGIC), pickled(MAGIC + 1)))
    assert_refused(path, "no file of torch.save")
    path.write_bytes(whole.replace(pickled(1001), pickled(1002)))
    assert_refused(path, "no file of torch.save")


def test_files_that_are_none(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    assert_refused(path, "no such file")
    assert_refused(tmp_path, "no such file")
    for content, words in [
        (b"", ("is empty",)),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ("is a Git LFS pointer",)),
        (b"\x80", ("cannot be read",)),
        (b"PK\3\4", ("cannot be read",)),
        (bytes(257) + b"ustar" + bytes(300), ("tar archive",)),
        (pickle.dumps(collections.OrderedDict(w=1)), ("no file of torch.save",)),
    ]:
        path.write_bytes(content)
        assert_refused(path, *words)
