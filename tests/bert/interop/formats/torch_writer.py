"""A small writer of PyTorch files in both containers, opcode by opcode, that can say what torch.save never would.

Also what its two users, torch_file_test.py and torch_pickle_test.py, compare with.
"""

import struct
import zipfile

import numpy as np
import pytest

from bert.errors import InputError
from bert.interop.formats.torch_file import open_torch

CONTAINERS = ("archive", "stream")
MAGIC = 0x1950A86A20F9469CFC6C


class Raw(bytes):
    """Opcodes as they are."""


def opcodes(value) -> bytes:
    """A value as opcodes of pickle, protocol 2."""
    match value:
        case Raw():
            return bytes(value)
        case None | bool():
            return {None: b"N", True: b"\x88", False: b"\x89"}[value]
        case int():
            size = value.bit_length() // 8 + 1
            return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)
        case str():
            return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
        case dict():
            return b"}(" + b"".join(opcodes(item) for pair in value.items() for item in pair) + b"u"
        case tuple():
            return b"(" + b"".join(map(opcodes, value)) + b"t"
        case list():
            return b"](" + b"".join(map(opcodes, value)) + b"e"
    raise TypeError(value)


def pickled(value) -> bytes:
    return b"\x80\x02" + opcodes(value) + b"."


def named(module, name):
    return Raw(f"c{module}\n{name}\n".encode())


def call(function, arguments):
    return Raw(function + opcodes(arguments) + b"R")


def persistent(value):
    return Raw(opcodes(value) + b"Q")


def with_state(value, state):
    return Raw(opcodes(value) + opcodes(state) + b"b")


ORDERED = named("collections", "OrderedDict")
REBUILD = named("torch._utils", "_rebuild_tensor_v2")


def stored(count=6, key="0", kind="FloatStorage", container="archive", view=None):
    fields = ("storage", named("torch", kind), key, "cpu", count)
    return persistent(fields if container == "archive" else (*fields, view))


def tensor(shape=(2, 3), strides=(3, 1), offset=0, **storage):
    return call(REBUILD, (stored(**storage), offset, shape, strides, False, call(ORDERED, ())))


NUMBERS = np.arange(6, dtype=np.float32)
STORAGES = {"0": (6, NUMBERS.tobytes())}


def write_file(folder, container, held, storages=STORAGES, little=True, prefix="archive"):
    """A file in that folder with that object and storages, key -> (count, bytes); "archive" is ZIP, "stream" older."""
    path = folder / f"{container}.bin"
    if container == "stream":
        heads = [MAGIC, 1001, {"protocol_version": 1001, "little_endian": little}, held, sorted(storages)]
        data = [struct.pack("<q", count) + numbers for _, (count, numbers) in sorted(storages.items())]
        path.write_bytes(b"".join([*map(pickled, heads), *data]))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{prefix}/data.pkl", pickled(held))
        archive.writestr(f"{prefix}/byteorder", "little" if little else "big")
        for key, (_, numbers) in storages.items():
            archive.writestr(f"{prefix}/data/{key}", numbers)
    return path


def assert_refused(path, *words):
    """One line that names the file and says each of the words."""
    with pytest.raises(InputError) as caught:
        open_torch(path)
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(f"{path}: ")
    assert "; " in message, "a way out"
    assert len(message) < 700
    for word in words:
        assert word in message, message


def assert_equal(got, want):
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
