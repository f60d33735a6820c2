"""Model directories that are broken, each in one way: how the tiny model's is changed, and what the line then says."""

import json
import shutil

import numpy as np
import safetensors.numpy

from bert.interop import parameters
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop import torch_writer
from tests.bert.interop.bundle_writer import write_checkpoint

TABLE = "bert.embeddings.word_embeddings.weight"
KEY = "bert.encoder.layer.1.attention.self.key.weight"


def change_config(folder, name="config.json", **changes):
    values = json.loads((folder / name).read_text()) | changes
    (folder / name).write_text(json.dumps(values))


def change_tensors(folder, change):
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def change_header(folder, change):
    """The header of a safetensors file is a length of eight bytes and JSON."""
    data = (folder / "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    change(header)
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data[end:])


def cut(folder):
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])


def lie_about_offsets(folder):
    change_header(folder, lambda header: header[KEY].update(data_offsets=[0, 4096]))


def claim_much(folder):
    change_header(folder, lambda header: header[KEY].update(shape=[2**40, 2**20], data_offsets=[0, 2**62]))


def spoil(value):
    def change(tensors):
        tensors[KEY][3, 7] = value

    return lambda folder: change_tensors(folder, change)


def drop(folder):
    change_tensors(folder, lambda tensors: tensors.pop(KEY))


def reshape(folder):
    change_tensors(folder, lambda tensors: tensors.update({KEY: np.zeros((16, 64), np.float32)}))


def two_values(folder):
    name = "bert.embeddings.LayerNorm.gamma"
    change_tensors(folder, lambda tensors: tensors.update({name: np.zeros(32, np.float32)}))


def another_decoder(folder):
    name = "cls.predictions.decoder.weight"
    change_tensors(folder, lambda tensors: tensors.update({name: np.zeros((128, 32), np.float32)}))


def longer_vocabulary(folder):
    with (folder / "vocab.txt").open("a") as file:
        file.write("two\nmore\n")


def shards(folder, homes):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))


def pickle_of(call, container):
    def change(folder):
        (folder / "model.safetensors").unlink()
        made = torch_writer.write_file(folder, container, {"w": call(folder)})
        made.rename(folder / "pytorch_model.bin")

    return change


def os_system(folder):
    touch = torch_writer.named("os", "system")
    return torch_writer.call(touch, (f"touch {folder / 'executed'}",))


def far_away(folder):
    return torch_writer.tensor(shape=(2, 2**40), strides=(1, 1))


def checkpoint(change):
    def changed(folder):
        found = load_model_directory(folder)
        (folder / "model.safetensors").unlink()
        (folder / "config.json").rename(folder / "bert_config.json")
        prefix = folder / "bert_model.ckpt"
        variables = dict(parameters.from_params(found.params, found.config, column="google"))
        write_checkpoint(prefix, variables, shards=2)
        change(prefix)

    return changed


def flip_a_bit(prefix):
    path = prefix.with_name(f"{prefix.name}.data-00001-of-00002")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def lose_a_shard(prefix):
    prefix.with_name(f"{prefix.name}.data-00001-of-00002").unlink()


def cut_the_index(prefix):
    path = prefix.with_name(f"{prefix.name}.index")
    path.write_bytes(path.read_bytes()[:-100])


def run_of_nothing(folder):
    shutil.rmtree(folder)
    folder.mkdir()


BROKEN = {
    "safetensors cut short": (cut, r"model\.safetensors: cannot be read .* damaged or cut short"),
    "safetensors with offsets that lie": (lie_about_offsets, r"model\.safetensors: cannot be read .* damaged"),
    "safetensors that claims four exabytes": (claim_much, r"model\.safetensors: cannot be read .* damaged"),
    "a weight that is not a number": (spoil(np.nan), rf"{KEY} holds nan at \[3, 7\]; a weight must be finite"),
    "a weight that is infinite": (spoil(np.inf), rf"{KEY} holds inf at \[3, 7\]; a weight must be finite"),
    "a weight that is absent": (drop, rf"missing {KEY}"),
    "a weight of another shape": (reshape, rf"{KEY} has shape \[16, 64\], the configuration asks for \[32, 32\]"),
    "one parameter twice, and different": (two_values, r"LayerNorm\.(weight|gamma) and .* are one parameter"),
    "an output layer of its own": (another_decoder, r"cls\.predictions\.decoder\.weight differs from bert\.emb"),
    "a vocabulary of another size": (longer_vocabulary, "the vocabulary has 130 entries, the model 128 rows"),
    "a config with another number of layers": (
        lambda folder: change_config(folder, num_hidden_layers=1),
        "config.json says num_hidden_layers 1",
    ),
    "a config of a width that no memory holds": (
        lambda folder: change_config(folder, hidden_size=10**12),
        r"word_embeddings\.weight has shape \[128, 32\], the configuration asks for \[128, 1000000000000\]",
    ),
    "a config of more layers than can be listed": (
        lambda folder: change_config(folder, num_hidden_layers=10**9),
        r"missing bert\.encoder\.layer\.2\.attention\.self\.query\.weight",
    ),
    "a pointer in place of the weights": (
        lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid 1\n"),
        r"model\.safetensors: is a Git LFS pointer, not the file itself; fetch that with `git lfs pull`",
    ),
    "a name with a line end": (
        lambda folder: change_tensors(
            folder,
            lambda tensors: tensors.update({"roberta\nerror: x.embeddings.word_embeddings.weight": tensors.pop(TABLE)}),
        ),
        r"the weights stand under 'roberta\\nerror: x' \(roberta\\nerror: x\.embeddings",
    ),
    "a config of another model": (
        lambda folder: change_config(folder, model_type="roberta"),
        "model_type is 'roberta'; only 'bert' can be loaded here",
    ),
    "a config that is no JSON": (lambda folder: (folder / "config.json").write_text("{"), r"config\.json:1: not JSON"),
    "a shard that is absent": (
        lambda folder: shards(folder, {KEY: "model-00001-of-00002.safetensors"}),
        r"model-00001-of-00002\.safetensors: no such file, but .* names it",
    ),
    "a shard elsewhere": (
        lambda folder: shards(folder, {KEY: "../../secret.safetensors"}),
        "names the file '../../secret.safetensors'; shards lie beside their index",
    ),
    "a pickle that runs a program (zip)": (
        pickle_of(os_system, "archive"),
        "names os.system, .* nothing of it was run",
    ),
    "a pickle that runs a program (old)": (pickle_of(os_system, "stream"), "names os.system, .* nothing of it was run"),
    "a pickle with a tensor beyond its file": (pickle_of(far_away, "archive"), r"pytorch_model\.bin: tensor w "),
    "a checkpoint with a wrong checksum": (checkpoint(flip_a_bit), r"00001-of-00002: the data of .* has the checksum"),
    "a checkpoint without a shard": (checkpoint(lose_a_shard), r"data-00001-of-00002: no such file"),
    "a checkpoint with a cut index": (checkpoint(cut_the_index), r"ckpt\.index: .* copy or download it again"),
    "an empty directory": (run_of_nothing, r"config\.json: no such file; a model directory holds config\.json"),
}
