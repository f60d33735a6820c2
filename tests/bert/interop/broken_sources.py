"""Model directories that are broken, one for each reader: how the tiny model's is changed, and what the line says."""

import json
import shutil

import numpy as np
import safetensors.numpy

from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.formats import torch_writer
from tests.bert.interop.formats.bundle_writer import variables_of, write_checkpoint

TABLE = "bert.embeddings.word_embeddings.weight"
KEY = "bert.encoder.layer.1.attention.self.key.weight"


def change_config(folder, name="config.json", **changes):
    values = json.loads((folder / name).read_text()) | changes
    (folder / name).write_text(json.dumps(values))


def change_tensors(folder, change):
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def cut(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def spoil(value):
    def change(tensors):
        tensors[KEY][3, 7] = value

    return lambda folder: change_tensors(folder, change)


def shards(folder, homes):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))


def pickle_of_a_command(folder):
    (folder / "model.safetensors").unlink()
    command = torch_writer.call(torch_writer.named("os", "system"), (f"touch {folder / 'executed'}",))
    torch_writer.write_file(folder, "archive", {"w": command}).rename(folder / "pytorch_model.bin")


def checkpoint_with_a_turned_bit(folder):
    found = load_model_directory(folder)
    (folder / "model.safetensors").unlink()
    (folder / "config.json").rename(folder / "bert_config.json")
    write_checkpoint(folder / "bert_model.ckpt", variables_of(found), shards=2)
    path = folder / "bert_model.ckpt.data-00001-of-00002"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def run_of_nothing(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def table_under_another_name(tensors):
    tensors["roberta\nerror: x.embeddings.word_embeddings.weight"] = tensors.pop(TABLE)


# name -> (what breaks the directory, words of the message)
BROKEN = {
    "safetensors cut short": (cut, "model.safetensors", "damaged or cut short"),
    "a weight that is not a number": (spoil(np.nan), KEY, "nan at [3, 7]", "finite"),
    "a config of a width that no memory holds": (
        lambda folder: change_config(folder, hidden_size=10**12), "word_embeddings.weight", "[128, 32]", f"{10**12}]",
    ),
    "a config of more layers than can be listed": (
        lambda folder: change_config(folder, num_hidden_layers=10**9), "missing bert.encoder.layer.2.attention",
    ),
    "a name with a line end": (
        lambda folder: change_tensors(folder, table_under_another_name), r"'roberta\nerror: x'", "prefix",
    ),
    "a config that is no JSON": (lambda folder: (folder / "config.json").write_text("{"), "config.json:1", "JSON"),
    "a shard that is absent": (
        lambda folder: shards(folder, {KEY: "model-00001-of-00002.safetensors"}), "00001-of-00002", "no such file",
    ),
    "a pickle that runs a program": (pickle_of_a_command, "os.system", "nothing of it was run"),
    "a checkpoint with a wrong checksum": (checkpoint_with_a_turned_bit, "00001-of-00002", "checksum"),
    "an empty directory": (run_of_nothing, "config.json: no such file"),
}  # fmt: skip
