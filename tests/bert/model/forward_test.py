"""Forward passes: parameters by layer give what the stack gives, without copies; options that the compiler knows."""

import dataclasses
import pathlib
import re

import jax
import numpy as np
import pytest

import bert
from bert.architectures.recurrent import RecurrentConfig
from bert.model import forward, matmul, stack

TINY = pathlib.Path(__file__).resolve().parents[2] / "golden" / "tiny_bert"
IDS = np.array([[2, 7, 9, 11, 3, 0, 0, 0]], np.int32)
BATCH = {
    "token_ids": IDS,
    "type_ids": np.zeros_like(IDS),
    "position_ids": np.arange(8, dtype=np.int32)[None],
    "example_ids": (IDS > 0).astype(np.int32),
}
WANTED = ("sequence_output", "hidden_states", "attentions", "pooled_output")


@pytest.fixture(scope="module")
def model():
    return bert.load(TINY)


def test_parameters_by_layer_give_what_the_stack_gives(model):
    config, layers = model.config, stack.by_layer(model.params, model.config)
    assert isinstance(layers["encoder"]["blocks"], tuple)
    assert len(layers["encoder"]["blocks"]) == config.num_layers
    assert stack.by_layer(layers, config)["encoder"]["blocks"] is layers["encoder"]["blocks"]
    one, other = (forward.outputs(p, BATCH, config=config, wanted=WANTED) for p in (model.params, layers))
    for name in WANTED:
        np.testing.assert_allclose(other[name], one[name], atol=1e-6, err_msg=name)
    for layer in range(config.num_layers):
        pair = (forward.attention(p, BATCH, layer, config=config) for p in (model.params, layers))
        for a, b in zip(*pair, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("more", [{}, {"cls_positions": [[3, 0]]}, {"masked_positions": [[4, 1, 0]]}], ids=str)
def test_outputs_read_at_some_positions_equal_those_read_off_all(model, more):
    """Alone, so that the last block is cut to what they read, and beside the hidden states of all positions."""
    batch = BATCH | {name: np.array(places, np.int32) for name, places in more.items()}
    wanted = ("example_output", "pooled_output", "nsp_logits", *(("mlm_logits",) if "masked_positions" in more else ()))
    run = lambda names: forward.outputs(model.params, batch, config=model.config, wanted=names)  # noqa: E731
    alone, beside = run(wanted), run((*wanted, "sequence_output"))
    for name in wanted:
        np.testing.assert_allclose(alone[name], beside[name], atol=1e-5, err_msg=name)


def test_a_pass_with_parameters_by_layer_cuts_nothing_out_of_a_stack(model):
    def slices(params) -> int:
        run = jax.jit(lambda p: forward.traced_outputs(p, BATCH, config=model.config, wanted=("sequence_output",)))
        return len(re.findall(r"stablehlo\.(?:dynamic_)?slice\b", run.lower(params).as_text()))

    assert slices(model.params) > 0
    assert slices(stack.by_layer(model.params, model.config)) == 0


def test_a_scan_keeps_its_stack(model):
    config = dataclasses.replace(model.config, layer_loop="scan")
    assert stack.by_layer(model.params, config)["encoder"] is model.params["encoder"]


def test_an_encoder_without_equal_blocks_keeps_its_parameters():
    params = {"encoder": {"forward_0": {"state": np.zeros((2, 6))}}, "head": {}}
    assert stack.by_layer(params, RecurrentConfig(9)) is params


def test_options_of_the_compiler():
    """Given where products are float32 and this compiler has them."""
    assert matmul.inference_options("float32") == {"xla_cpu_experimental_ynn_fusion_type": ""}
    assert matmul.inference_options("bfloat16") is None
    assert not matmul._compiler_has("xla_no_such_option")


def test_a_compiler_without_the_option_computes_the_same(model, monkeypatch):
    want = forward.outputs(model.params, BATCH, config=model.config, wanted=WANTED)
    monkeypatch.setattr(matmul, "_compiler_has", lambda option: False)
    forward.compiled_outputs.cache_clear()
    got = forward.outputs(model.params, BATCH, config=model.config, wanted=WANTED)
    forward.compiled_outputs.cache_clear()
    for name in WANTED:
        np.testing.assert_allclose(got[name], want[name], atol=1e-6, err_msg=name)
