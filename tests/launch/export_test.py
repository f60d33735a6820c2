"""`python -m launch.export`: any source to any format; twenty broken sources, each one line and exit code 2."""

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

import bert
from bert.errors import InputError
from bert.interop import parameters
from bert.interop.hugging_face import load_model_directory
from launch import export, flags
from tests.bert.interop import torch_writer
from tests.bert.interop.bundle_writer import write_checkpoint

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
TINY = CHECKOUT / "tests" / "golden" / "tiny_bert"
CLASSIFIER = TINY.with_name("tiny_seqcls")
KEY = "bert.encoder.layer.1.attention.self.key.weight"


def run(*words):
    export.run(["export", *map(str, words)])


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_a_hugging_face_directory(tmp_path, capsys, dtype):
    """Says what was loaded and each file that was written; the weights are the source's, rounded if asked for."""
    run(f"--source={CLASSIFIER}", f"--out={tmp_path / 'out'}", *([f"--dtype={dtype}"] if dtype else []))
    lines = capsys.readouterr().out.splitlines()
    assert "parts: encoder, pooler, sequence_classifier" in lines[0]
    assert lines[1].startswith(f"wrote {tmp_path / 'out' / 'config.json'}, ")
    assert str(tmp_path / "out" / "model.safetensors") in lines[1]
    back, before = bert.load(tmp_path / "out"), bert.load(CLASSIFIER)
    assert back.labels == before.labels
    want = before.params["encoder"]["blocks"]["attention"]["query"]["kernel"]
    got = back.params["encoder"]["blocks"]["attention"]["query"]["kernel"]
    np.testing.assert_allclose(got, want, rtol=0 if dtype is None else 2**-8)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == (dtype or "float32")


@pytest.mark.parametrize(("format", "file"), [("stablehlo", "model.stablehlo"), ("onnx", "model.onnx")])
def test_a_program(tmp_path, capsys, format, file):
    """One file with weights and program; beside it what a person needs to make its inputs and read its outputs."""
    run(f"--source={CLASSIFIER}", f"--out={tmp_path / 'out'}", f"--format={format}")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {file, "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert str(tmp_path / "out" / file) in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "config.json").read_text())["id2label"]["0"] == "entailment"
    assert (tmp_path / "out" / file).stat().st_mode == (tmp_path / "out" / "config.json").stat().st_mode
    run(f"--source={CLASSIFIER}", f"--out={tmp_path / 'out'}")  # one format may replace another
    assert "model.safetensors" in {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format=tflite",), "format is 'tflite'; it must be one of huggingface, stablehlo, onnx"),
        (("--dtype=int8",), "dtype is 'int8'; it must be one of float32, float16, bfloat16"),
        (("--format=onnx", "--dtype=float16"), "a file of the format onnx holds float32; leave dtype out"),
        (("--fromat=onnx",), "unknown option --fromat; did you mean --format"),
    ],
)
def test_choices_that_there_are_not(tmp_path, words, said):
    with pytest.raises(InputError, match=said):
        run(f"--source={TINY}", f"--out={tmp_path / 'out'}", *words)
    assert list(tmp_path.iterdir()) == []


# --- twenty broken sources: (how the tiny model's directory is broken, what the line says) --------------------------


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
        variables = dict(parameters.from_params(found.params, found.config, format="google"))
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
    "a config of another model": (
        lambda folder: change_config(folder, model_type="roberta"),
        "model_type is 'roberta'; only 'bert' can be loaded here",
    ),
    "a config that is no JSON": (lambda folder: (folder / "config.json").write_text("{"), r"config\.json: not JSON"),
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


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_sources(tmp_path, monkeypatch, capsys, fault):
    """Exit code 2, one line that names the file and the fault, nothing executed, nothing written."""
    change, said = BROKEN[fault]
    source = tmp_path / "source"
    shutil.copytree(TINY, source)
    change(source)
    monkeypatch.setattr(sys, "argv", ["export", f"--source={source}", f"--out={tmp_path / 'out'}"])
    monkeypatch.setattr(flags.console, "plain_logging", lambda: None)  # it replaces the handlers of the whole process
    with pytest.raises(SystemExit) as exited:
        flags.main(export.run)
    assert exited.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith(f"error: {source}")
    with pytest.raises(InputError, match=said):
        raise InputError(error)
    assert not (source / "executed").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_weight_too_large_for_float16_is_refused(tmp_path):
    """70,000 is beyond float16 and not beyond bfloat16; nothing is written where it is refused."""
    source = tmp_path / "source"
    shutil.copytree(TINY, source)
    spoil(70_000)(source)
    with pytest.raises(InputError, match=rf"{KEY} holds 70000, which float16 cannot; choose bfloat16 or float32"):
        run(f"--source={source}", f"--out={tmp_path / 'out'}", "--dtype=float16")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    run(f"--source={source}", f"--out={tmp_path / 'out'}", "--dtype=bfloat16")


def test_the_command_line_ends_with_code_2_and_one_line(tmp_path):
    """As a person runs it: the report of a good source, one line of error for a bad one, no traceback."""
    shutil.copytree(TINY, tmp_path / "cut")
    cut(tmp_path / "cut")
    command = [sys.executable, "-m", "launch.export", f"--source={tmp_path / 'cut'}", f"--out={tmp_path / 'out'}"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: ")
    command[3] = f"--source={TINY}"
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "46 tensors used, 0 ignored, 0 missing" in done.stderr
