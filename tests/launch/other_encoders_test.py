"""Recurrent and convolutional encoders by the commands: pretrained, killed and resumed, filled, scored."""

import json
import pathlib

import numpy as np
import pytest
from safetensors.numpy import load_file

import bert
from bert.data.batches import Batches
from bert.errors import InputError
from launch import pretrain, score

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_device")]
SMALL = ("--config.model.embedding_size=8", "--config.model.hidden_size=16", "--config.model.max_length=64")
SIZES = {
    "birnn": (*SMALL, "--config.model.num_layers=2"),
    "dilated": (*SMALL, "--config.model.num_layers=2"),
    "strided": (*SMALL, "--config.model.num_layers=6"),
}
STEPS = (
    "--config.total_steps=6", "--config.batch_size=8", "--config.max_length=32", "--config.optimizer.warmup_steps=2",
    "--config.log_every=3", "--config.evaluate_every=6", "--config.save_every=2", "--config.allocator=system",
)  # fmt: skip
every = pytest.mark.parametrize("kind", SIZES)


def train(kind, prepared, workdir, *more):
    words = (f"--config=configs/pretrain.py:{kind}", f"--config.data={prepared}", f"--workdir={workdir}", *SIZES[kind])
    pretrain.run(["pretrain", *map(str, words), *STEPS, *more])


class Made(dict):
    """kind -> the run of it, which is trained when it is first asked for."""

    def __init__(self, prepared, folder):
        self.prepared, self.folder = prepared, folder

    def __missing__(self, kind) -> pathlib.Path:
        train(kind, self.prepared, self.folder / kind)
        self[kind] = self.folder / kind
        return self[kind]


@pytest.fixture(scope="module")
def runs(prepared, tmp_path_factory) -> Made:
    return Made(prepared, tmp_path_factory.mktemp("runs"))


@every
def test_a_run_that_was_killed_ends_bit_equal(prepared, runs, tmp_path, monkeypatch, kind):
    """With dropout; the crash is in step 5, after the checkpoint of step 4."""
    real = Batches.__call__

    def crash(self, index, rows=slice(None)):
        if index == 5:
            raise ConnectionAbortedError
        return real(self, index, rows)

    with monkeypatch.context() as patched:
        patched.setattr(Batches, "__call__", crash)
        with pytest.raises(ConnectionAbortedError):
            train(kind, prepared, tmp_path / "run")
    train(kind, prepared, tmp_path / "run")
    whole, parts = (load_file(run / "model" / "model.safetensors") for run in (runs[kind], tmp_path / "run"))
    for name, tensor in whole.items():
        np.testing.assert_array_equal(tensor, parts[name], err_msg=name)


@every
def test_a_run_logs_its_objective_and_its_model_loads_back_from_an_export(runs, tmp_path, kind):
    rows = [json.loads(line) for line in (runs[kind] / "metrics.jsonl").read_text().splitlines()]
    objective = "mlm" if kind == "strided" else "blank"
    assert {f"{objective}_loss", f"{objective}_perplexity", f"{objective}_accuracy"} <= set(rows[-1])
    model = bert.load(runs[kind])
    again = bert.load(bert.save(model, tmp_path / "export"))
    assert again.config == model.config
    ids = [[2, 8, 9, 6, 3]]
    for name, value in model.outputs(ids).items():
        np.testing.assert_array_equal(value, again.outputs(ids)[name])


def test_a_blank_is_filled_from_its_context_alone_and_several_each_without_the_others(runs):
    """What stands in the place of [MASK] is not read; a second mask is as if there were no word."""
    model = bert.load(runs["birnn"])
    masked = model.fill_mask("the lamp [MASK] the sea .", top=20)
    vocab = model.vocabulary.vocab
    ids = model.vocabulary.encode("the lamp storm the sea .").ids
    logits = model.outputs([[2, *ids, 3]])["mlm_logits"][0, 3]
    shares = np.exp(logits - np.logaddexp.reduce(logits))
    assert dict(masked[0]) == pytest.approx(dict(zip(vocab, shares.tolist(), strict=True)), rel=1e-4)
    for found, text in zip(
        model.fill_mask("the [MASK] rock [MASK] .", top=20), ("the [MASK] rock .", "the rock [MASK] ."), strict=True
    ):
        assert dict(found) == pytest.approx(dict(model.fill_mask(text, top=20)[0]), rel=1e-4)


@every
def test_the_score_of_the_held_out_text_is_that_of_the_run(prepared, runs, tmp_path, kind):
    """And a sentence's pseudo-log-likelihood is the sum over its tokens, each scored without being read."""
    (tmp_path / "text.txt").write_text("the lamp the sea storm .\nthe gull .\n")
    out, sentences = tmp_path / "scores.json", tmp_path / "sentences.jsonl"
    score.run(
        [
            "score",
            f"--model={runs[kind]}",
            f"--data={tmp_path / 'text.txt'}",
            f"--out={out}",
            f"--per_sentence={sentences}",
        ]
    )
    objective = "mlm" if kind == "strided" else "blank"
    assert json.loads(out.read_text())["scores"][f"{objective}_loss"] > 0
    model, rows = bert.load(runs[kind]), [json.loads(line) for line in sentences.read_text().splitlines()]
    for row in rows:
        ids = [2, *model.vocabulary.encode(row["text"]).ids, 3]
        total = 0.0
        for place in range(1, len(ids) - 1):
            read = [*ids[:place], 4, *ids[place + 1 :]]
            logits = model.outputs([read])["mlm_logits"][0, place]
            total += float(logits[ids[place]] - np.logaddexp.reduce(logits))
        assert row["pll"] == pytest.approx(total, abs=1e-3)


@pytest.mark.parametrize(
    ("kind", "setting", "said"),
    [
        ("strided", "--config.examples.packed=True", "'strided'.*packed=False"),
        ("strided", "--config.objective=blank", "'blank'.*'strided'.*objective=mlm"),
        ("birnn", "--config.model.stacks=joint", "'blank'.*'birnn'.*objective=mlm"),
        ("birnn", "--config.objective=mlm", "'mlm'.*'birnn'.*objective=blank"),
        ("birnn", "--config.max_length=65", "max_length is 65.*64 positions.*config.model.max_length"),
        ("dilated", "--config.examples.objective=nsp", "examples.objective is 'nsp'.*blank.*none"),
        ("dilated", "--config.examples.whole_words=True", "whole_words.*blank"),
    ],
)
def test_what_an_encoder_cannot_do_is_refused_by_name(prepared, tmp_path, kind, setting, said):
    with pytest.raises(InputError, match=said):
        train(kind, prepared, tmp_path / "run", setting)
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_run_starts_from_weights_whose_sizes_it_takes_over(prepared, runs, tmp_path, capsys):
    """At rate almost 0 they come out again; those of another architecture are refused."""
    still, start = "--config.optimizer.learning_rate=1e-30", f"--config.init_from={runs['birnn']}"
    train("birnn", prepared, tmp_path / "run", still, start, "--config.model.embedding_size=12")
    assert "config.model.embedding_size is 8, as the weights of" in capsys.readouterr().out
    before, after = (bert.load(run).params["encoder"] for run in (runs["birnn"], tmp_path / "run"))
    np.testing.assert_array_equal(before["token"]["embedding"], after["token"]["embedding"])
    with pytest.raises(InputError, match=r"is a 'birnn' encoder.*'dilated'"):
        train("dilated", prepared, tmp_path / "other", start)
