"""A path is a model directory or a run directory, and what is newest in it is found."""

import json
import pathlib
import random
import resource

import jax
import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.interop import sources
from bert.interop.export import save_model_directory
from bert.training import run_directory
from bert.training.checkpoint import Checkpoints
from tests.bert.refusals import refused

TINY = pathlib.Path(__file__).resolve().parents[2] / "golden" / "tiny_bert"


def test_a_run_directory_gives_its_newest_export_or_else_its_newest_checkpoint(tmp_path):
    tiny = bert.load(TINY)
    run = tmp_path / "run"
    checkpoints = Checkpoints(run / "checkpoints")
    with pytest.raises(InputError, match="no run here"):
        bert.load(run)
    for nothing in ({"seed": 1}, {"encoder": 3}, []):
        (run / "config.json").write_text(json.dumps(nothing))
        with pytest.raises(InputError, match=r"config.json: .*(encoder|list)"):
            bert.load(run)
    settings = {"encoder": tiny.config.to_json(), "seed": 1, "examples.objective": "sop"}
    (run / "config.json").write_text(json.dumps(settings))
    tiny.tokenizer.save(run)
    checkpoints.save(2, {"params": jax.tree.map(np.zeros_like, tiny.params), "step": np.int32(2)}, meta={})
    checkpoints.save(9, {"params": tiny.params, "step": np.int32(9)}, meta={})
    checkpoints.close()
    from_checkpoint = bert.load(run)
    assert str(from_checkpoint.report).startswith(f"{run}/checkpoints/9: 30 parameters used, ")
    assert from_checkpoint.fill_mask("the [MASK]") == tiny.fill_mask("the [MASK]")
    assert list(from_checkpoint.predict_next_sentence("the cat", "sat")) == ["in_order", "swapped"]
    export = jax.tree.map(np.copy, tiny.params)
    export["head"]["mlm"]["bias"][40] = 100
    save_model_directory(run / "model", tiny.config, export, tiny.tokenizer)
    assert bert.load(run).fill_mask("the [MASK]")[0][0][0] == tiny.tokenizer.vocab[40]
    (run / "model" / "tokenizer_config.json").unlink()  # the other files might give another tokenizer
    with refused("model/tokenizer_config.json", "missing"):
        bert.load(run)


def test_a_run_is_a_run_whatever_else_lies_in_it(tmp_path):
    """Files that look like a checkpoint of TensorFlow, even with data, do not come before a run's own."""
    tiny = bert.load(TINY)
    save_model_directory(tmp_path / "run" / "model", tiny.config, tiny.params, tiny.tokenizer)
    for name in ("notes.index", "notes.data-00000-of-00001"):
        (tmp_path / "run" / name).write_text("mine")
    assert bert.load(tmp_path / "run").fill_mask("the [MASK]") == tiny.fill_mask("the [MASK]")


def test_a_run_that_was_killed_before_its_first_checkpoint_is_called_so(tmp_path):
    for name in ("config.json", "lock"):
        (tmp_path / name).write_text("{}")
    with refused(str(tmp_path), "no checkpoint yet"):
        bert.load(tmp_path)


def test_what_the_system_refuses_is_one_line(tmp_path, monkeypatch):
    """Whichever file of a directory may not be read."""

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(pathlib.Path, "is_file", refuse)
    with refused(str(tmp_path), "Permission denied"):
        bert.load(tmp_path)


def test_what_cannot_be_made_new_is_told_before_anything_is_read():
    with refused("'poolr'", "new"):
        sources.read("nowhere", fresh=("poolr",))


def test_an_encoder_alone_gets_its_head(tmp_path):
    """The case that new parts are for: nothing but the encoder is there."""
    tiny = bert.load(TINY)
    alone = save_model_directory(tmp_path / "alone", tiny.config, {"encoder": tiny.params["encoder"]}, tiny.tokenizer)
    assert sources.read(alone).parts == ("encoder",)
    found = sources.read(alone, fresh=("mlm", "pooler", "next_sentence"))
    assert set(found.parts) == {"encoder", "mlm", "pooler", "next_sentence"}


VALUES = (None, True, -1, 0, 2**70, 1e300, "", "7", [], [1], ["a", 1], {}, {"a": {}}, [[]])


@pytest.fixture(scope="module")
def run_of_two_classes(tmp_path_factory):
    """A run directory without an export, and what its checkpoint holds."""
    model = bert.load(TINY.with_name("tiny_seqcls"))
    run = tmp_path_factory.mktemp("runs") / "run"
    checkpoints = Checkpoints(run / "checkpoints")
    checkpoints.save(3, {"params": model.params}, meta={"totals": {}, "best": None})
    checkpoints.close()
    settings = {"seed": 1, "encoder": model.config.to_json(), "labels": list(model.labels), "extra": {"a": [1]}}
    run_directory.write(run, settings, model.tokenizer)
    return run, settings | {"tokenizer_sha256": model.tokenizer.fingerprint}, model.params


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"labels": None}, "labels"),
        ({"labels": ["a", 7, "c"]}, "labels holds 7"),
        ({"labels": ["a", "b"]}, "2 labels for the 3 classes"),
        ({"extra": "x"}, "extra"),
        ({"encoder": []}, "encoder"),
        ({"tokenizer_sha256": "0"}, "tokenizer"),
        ({"data_sha256": 1}, "data_sha256"),
    ],
)
def test_settings_of_a_run_that_cannot_be_are_named(run_of_two_classes, changes, said):
    run, settings, _ = run_of_two_classes
    (run / "config.json").write_text(json.dumps(settings | changes))
    with pytest.raises(InputError, match=said):
        bert.load(run)


@pytest.mark.parametrize("name", ["labels", "extra", "encoder"])
def test_settings_of_a_run_that_are_gone_are_not_guessed(run_of_two_classes, name):
    """Without its labels a fine-tuning run is none of pretraining."""
    run, settings, _ = run_of_two_classes
    (run / "config.json").write_text(json.dumps({key: value for key, value in settings.items() if key != name}))
    with pytest.raises(InputError, match=name):
        bert.load(run)


@pytest.mark.parametrize("size", [{"num_hidden_layers": 10**9}, {"hidden_size": 64}, {"vocab_size": 41}])
def test_an_encoder_unlike_its_checkpoint_is_refused_before_it_is_built(run_of_two_classes, size):
    run, settings, _ = run_of_two_classes
    (run / "config.json").write_text(json.dumps(settings | {"encoder": settings["encoder"] | size}))
    with refused("no encoder of checkpoint 3", "shape"):
        sources.run_encoder(run)


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_mutated_settings_of_a_run_end_in_one_line_or_are_read(run_of_two_classes, monkeypatch, count):
    """Values of other types, lost keys, and bytes of the file itself; in seconds, within a gigabyte."""
    run, settings, params = run_of_two_classes
    monkeypatch.setattr("bert.training.checkpoint.newest_params", lambda *_: (3, params))  # they are as they were
    rng, said, before = random.Random(count), [], peak()
    places = [(name,) for name in settings] + [("encoder", name) for name in settings["encoder"]]
    for number in range(count):
        values = json.loads(json.dumps(settings))
        *outer, name = rng.choice(places)
        holder = values["encoder"] if outer else values
        if number % 4:
            holder[name] = rng.choice(VALUES)
        else:
            holder.pop(name)
        content = bytearray(json.dumps(values).encode())
        for _ in range(rng.randint(1, 4) if number % 2 else 0):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (run / "config.json").write_bytes(content)
        for read in (bert.load, lambda path: run_directory.check(path, settings, may_change=("seed",))):
            try:
                read(run)
            except InputError as error:
                said.append(str(error))
    assert len(said) > count
    assert not [line for line in said if "\n" in line]
    assert peak() - before < 1 << 20


def peak() -> int:
    """The most memory that this process has had, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
