"""Model files with random damage: each loads or is refused in one line, without a wait and within a gigabyte."""

import io
import json
import random
import resource
import shutil
import sys
import time
import zipfile

import pytest
import safetensors.numpy

from bert.errors import InputError
from bert.interop import sources
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.formats import torch_writer
from tests.bert.interop.formats.bundle_writer import variables_of, write_checkpoint
from tests.bert.mutations import bytes_changed, json_changed

GIGABYTE = 1 << 30


def config(folder, rng):
    path = folder / "config.json"
    if rng.random() < 0.3:
        return {path: bytes_changed(path.read_bytes(), rng)}
    return {path: json.dumps(json_changed(json.loads(path.read_text()), rng)).encode()}


def safetensors_file(folder, rng):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    if rng.random() < 0.5:
        return {path: bytes_changed(data, rng)}
    end = 8 + int.from_bytes(data[:8], "little")
    header = json_changed(json.loads(data[8:end]), rng)
    text = json.dumps(header).encode()
    if rng.random() < 0.2:
        text = bytes_changed(text, rng)
    return {path: len(text).to_bytes(8, "little") + text + data[end:]}


def pickle_file(folder, rng):
    """Bytes of the archive, or of the pickle in it."""
    path = folder / "pytorch_model.bin"
    if rng.random() < 0.3:
        return {path: bytes_changed(path.read_bytes(), rng)}
    changed = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(changed, "w") as other:
        for name in archive.namelist():
            data = archive.read(name)
            other.writestr(name, bytes_changed(data, rng) if name.endswith("data.pkl") else data)
    return {path: changed.getvalue()}


def checkpoint(folder, rng):
    """Bytes of any file, or of what the index says of one variable, under a checksum that is right."""
    paths = sorted(folder.glob("bert_model.ckpt.*"))
    if rng.random() < 0.3:
        path = rng.choice(paths)
        return {path: bytes_changed(path.read_bytes(), rng)}
    tensors = safetensors.numpy.load_file(folder / "google.safetensors")

    def change(rows):
        i = rng.randrange(len(rows))
        key, value = rows[i]
        rows[i] = (bytes_changed(key, rng), value) if key and rng.random() < 0.2 else (key, bytes_changed(value, rng))
        return rows

    write_checkpoint(folder / "beside" / "other", tensors, shards=2, change=change)
    return {folder / "bert_model.ckpt.index": (folder / "beside" / "other.index").read_bytes()}


def in_format(format, tiny_directory, folder):
    shutil.copytree(tiny_directory, folder)
    if format in (config, safetensors_file):
        return
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    found = load_model_directory(folder)
    (folder / "model.safetensors").unlink()
    if format is pickle_file:
        held, storages = {}, {}
        for i, (name, tensor) in enumerate(tensors.items()):
            strides = tuple(stride // 4 for stride in tensor.strides)
            held[name] = torch_writer.tensor(tensor.shape, strides, key=str(i), count=tensor.size)
            storages[str(i)] = (tensor.size, tensor.tobytes())
        torch_writer.write_file(folder, "archive", held, storages).rename(folder / "pytorch_model.bin")
    else:
        (folder / "config.json").rename(folder / "bert_config.json")
        variables = variables_of(found)
        safetensors.numpy.save_file(variables, folder / "google.safetensors")
        write_checkpoint(folder / "bert_model.ckpt", variables, shards=2)
        (folder / "beside").mkdir()


@pytest.mark.parametrize("number", [30, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("format", [config, safetensors_file, pickle_file, checkpoint])
def test_damaged_files_load_or_are_refused_in_one_line(format, number, tiny_directory, tmp_path):
    folder, rng = tmp_path / "model", random.Random(0)
    in_format(format, tiny_directory, folder)
    before = sources.read(folder).params
    assert before["encoder"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    messages = []
    for i in range(number):
        changes = format(folder, rng)
        whole = {path: path.read_bytes() for path in changes}
        started = time.process_time()
        try:
            for path, data in changes.items():
                path.write_bytes(data)
            sources.read(folder)
        except InputError as error:
            messages.append(str(error))
        assert time.process_time() - started < 2, i
        for path, data in whole.items():
            path.write_bytes(data)
    assert len(messages) > number / 10
    assert [message for message in messages if not message.isprintable() or len(message) > 2000] == []
    if sys.platform == "linux":  # there the unit is 1024 bytes
        assert 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) < GIGABYTE
