"""ConvS2S: reference numbers, what a state has read, normalised kernels, and its configuration."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert import architectures
from bert.architectures.convs2s import ConvS2SConfig
from bert.architectures.convs2s_stacks import ReadingBlock
from bert.errors import InputError
from bert.model.pattern import Pattern
from bert.model.weights import Weights

TINY = {"embedding_size": 4, "hidden_size": 6, "num_layers": 2, "max_length": 16}


@dataclasses.dataclass(frozen=True)
class ReferenceConfig(ConvS2SConfig):
    """The last block of the reference's encoder is wider."""

    widths = ((16, 20), (16, 16))


def batch_of(source_BS, target_BU):
    """A pair a row; 0 is padding."""
    batch = {}
    for ids, keys in ((source_BS, ("token_ids", "example_ids", "position_ids")),
                      (target_BU, ("target_ids", "target_example_ids", "target_position_ids"))):  # fmt: skip
        places = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        batch |= dict(zip(keys, (ids, (ids != 0) * 1, places), strict=True))
    return batch


def test_blocks_logits_and_gradients_are_those_of_the_reference(shared):
    """Its two vocabularies are one after the other in ours; the weights of its softmax are its own."""
    folder = shared / "golden2" / "seq2seq"
    want, tensors = np.load(folder / "convs2s.npz"), load_file(folder / "convs2s.safetensors")
    words = len(tensors["e_src"])
    config = ReferenceConfig(words + len(tensors["e_tgt"]), 12, 16, 2, 12, start_id=words + 1)
    target = want["target_out"]
    real_BS, real_BU = want["source"] != 0, target > 0
    batch = batch_of(want["source"], np.where(real_BU, target + words, 0))
    encoder = architectures.build(config)
    names = {"enter_source": "enc_in", "enter_target": "dec_in", "leave_source": "enc_out", "leave_target": "dec_out"}

    def params_of(tensors):
        dense = lambda name: {"kernel": tensors[f"{name}_w"].T, "bias": tensors[f"{name}_b"]}  # noqa: E731
        taps = lambda name: {"kernel": tensors[f"{name}_w"], "bias": tensors[f"{name}_b"]}  # noqa: E731
        params = {ours: dense(theirs) for ours, theirs in names.items()}
        params["token"] = {"embedding": jnp.concatenate([tensors["e_src"], tensors["e_tgt"]])}
        for side, theirs in (("source", "p_src"), ("target", "p_tgt")):
            params[f"{side}_position"] = {"embedding": tensors[theirs]}
        for i in range(2):
            params[f"source_{i}"] = {"convolution": taps(f"enc{i}")}
            params[f"target_{i}"] = {"convolution": taps(f"dec{i}"), "query": dense(f"att{i}_in")}
            params[f"target_{i}"]["context"] = dense(f"att{i}_out")
        params["source_1"]["skip"] = dense("enc1_res")
        return params

    def both(encoder):
        memory = encoder.memory(batch)
        return memory, encoder.teacher_forced(memory, batch), encoder.attention(memory, batch)

    def loss(tensors):
        seen = lambda module, name: name in ("added", "gated", "__call__")  # noqa: E731
        outputs, noted = encoder.apply(
            {"params": params_of(tensors)}, method=both, capture_intermediates=seen, mutable=["intermediates"]
        )
        logits_BUV = outputs[1] @ tensors["softmax_w"].T + tensors["softmax_b"]
        nats_BU = -jnp.take_along_axis(jax.nn.log_softmax(logits_BUV), np.maximum(target, 0)[..., None], 2)[..., 0]
        return jnp.where(real_BU, nats_BU, 0).sum() / real_BU.sum(), (outputs, logits_BUV, noted["intermediates"])

    (nats, (outputs, logits_BUV, noted)), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(tensors)
    memory, _, weights_BAUS = outputs

    def check(found, name, real):
        scale = max(1.0, np.abs(want[name]).max())
        np.testing.assert_allclose(found[real], want[name][real], rtol=0, atol=1e-5 * scale, err_msg=name)

    check(memory.hidden_BSD[..., :12], "z", real_BS)
    np.testing.assert_allclose(
        (memory.hidden_BSD[..., 12:] - memory.hidden_BSD[..., :12])[real_BS],
        want["source_embedding"][real_BS],
        atol=1e-5,
    )
    for i in range(2):
        check(noted[f"source_{i}"]["added"][0], f"encoder_block_{i}", real_BS)
        check(noted[f"target_{i}"]["gated"][0], f"decoder_block_{i}_after_glu", real_BU)
        check(noted[f"target_{i}"]["added"][0], f"decoder_block_{i}", real_BU)
        check(weights_BAUS[:, i], f"decoder_block_{i}_attention", real_BU)
    check(logits_BUV, "logits", real_BU)
    np.testing.assert_allclose(nats, want["loss"], rtol=1e-5)
    named = [name for name in want.files if name.startswith("grad|")]
    assert len(named) == 10
    for name in named:
        found, wanted = gradients[name.removeprefix("grad|")], want[name]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * max(1, np.abs(wanted).max()), err_msg=name)


def test_the_worked_example_of_the_scaled_attention():
    """One word, whose query is its own output, reads three; the fourth is padding."""
    config = ConvS2SConfig(3, 2, 2)
    block = ReadingBlock(config, 2, (0,))
    eye = {"kernel": jnp.eye(2), "bias": jnp.zeros(2)}
    keys = np.array([[0.1, 0.4], [0.9, -0.3], [-0.2, 0.2], [9, 9]], np.float32)
    values = keys + np.array([[1, 0], [0, 1], [0.5, 0.5], [9, 9]], np.float32)
    y_BUD, words_BUE = np.array([[[0.5, -0.2]]], np.float32), np.zeros((1, 1, 2), np.float32)
    reading = Pattern(np.array([[1]]), np.array([[1, 1, 1, 0]]))
    inputs = (y_BUD, words_BUE, np.concatenate([keys, values], axis=1)[None], reading)
    variables = {"params": {"query": eye, "context": eye}}
    weights = block.apply(variables, *inputs, method="weights")[0, 0, 0]
    np.testing.assert_allclose(weights, [0.2769, 0.4751, 0.2480, 0], atol=5e-5)
    read = block.apply(variables, *inputs, method="read") - y_BUD
    np.testing.assert_allclose(read[0, 0], [1.3970, 1.0686], atol=1e-4)


def drawn(config, batch):
    encoder = architectures.build(config)
    return encoder, jax.jit(encoder.init)(jax.random.key(0), batch)["params"]


@pytest.mark.parametrize(("kernel_size", "layers"), [(3, 2), (2, 3), (4, 1), (5, 1), (1, 2)])
def test_states_have_read_the_tokens_of_the_formula(kernel_size, layers):
    """By the Jacobian by the embeddings of different words: of the source around a state, of the target before it."""
    config = ConvS2SConfig(24, **TINY | {"num_layers": layers}, kernel_size=kernel_size)
    source, target = np.arange(1, 11), np.arange(11, 21)
    batch = batch_of(source[None], target[None])
    encoder, params = drawn(config, batch)
    memory = encoder.apply({"params": params}, batch, method="memory")

    def states(table_VE):
        variables = {"params": params | {"token": {"embedding": table_VE}}}
        keys_SE = encoder.apply(variables, batch)["tokens"][0]
        return keys_SE, encoder.apply(variables, memory, batch, method="teacher_forced")[0]

    of_source, of_target = (
        np.abs(jacobian).sum((1, 3)) > 0 for jacobian in jax.jit(jax.jacobian(states))(params["token"]["embedding"])
    )
    left = layers * ((kernel_size - 1) // 2)
    offset_SS = np.arange(10) - np.arange(10)[:, None]
    wanted = (offset_SS >= -left) & (offset_SS < config.receptive_field - left)
    np.testing.assert_array_equal(of_source[:, source], wanted)
    # The words before are one place behind.
    wanted = (offset_SS < 0) & (offset_SS >= -config.receptive_field)
    np.testing.assert_array_equal(of_target[:, target], wanted)


def test_a_normalised_kernel_is_the_reference_s_and_begins_as_it_was_drawn(shared):
    want = np.load(shared / "golden2" / "seq2seq" / "weight_norm.npz")
    weights = Weights(want["v"].shape, bias=False, weight_norm=True)
    params = {"kernel": want["v"].astype(np.float32), "scale": want["g"].astype(np.float32)}
    np.testing.assert_allclose(weights.apply({"params": params})[0], want["w"], rtol=1e-5)
    params = weights.init(jax.random.key(0))["params"]
    np.testing.assert_allclose(weights.apply({"params": params})[0], params["kernel"], rtol=1e-6)
    longer = params | {"kernel": 3 * params["kernel"]}
    np.testing.assert_allclose(weights.apply({"params": longer})[0], params["kernel"], rtol=1e-6)


def test_normalised_kernels_are_the_same_model():
    """At its start; and every parameter of it has an influence."""
    config = ConvS2SConfig(24, **TINY)
    batch = batch_of(np.arange(1, 8)[None], np.arange(8, 14)[None])
    encoder, params = drawn(config, batch)
    normed, normed_params = drawn(dataclasses.replace(config, weight_norm=True), batch)

    def states(encoder, params):
        memory = encoder.apply({"params": params}, batch, method="memory")
        return encoder.apply({"params": params}, memory, batch, method="teacher_forced")

    run = jax.jit(states, static_argnums=0)
    np.testing.assert_allclose(run(encoder, params), run(normed, normed_params), atol=1e-6)
    gradients = jax.jit(jax.grad(lambda params: (states(normed, params) ** 2).sum()))(normed_params)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradients))


def test_config_json_holds_all_that_decides_the_weights_meaning():
    config = ConvS2SConfig(50, 12, 16, 3, kernel_size=5, weight_norm=True, start_id=7)
    values = config.to_json()
    assert architectures.config_from_json(values) == config
    assert ConvS2SConfig.json_notes(values) == []
    for name, value, said in (("kernel_size", 0, "kernel_size is 0"), ("start_id", 50, "start_id is 50")):
        with pytest.raises(InputError, match=rf"config\.json: {said}"):
            architectures.config_from_json(values | {name: value})
    with pytest.raises(InputError, match=r"'convs2s' .*pairs.*finetune"):
        architectures.check_objective(config, "mlm")


def test_depths_run_from_the_embeddings_to_the_decoders_last_block():
    encoder = architectures.build(ConvS2SConfig(24, **TINY))
    depths = {
        name: encoder.depth_of((name, "kernel"))
        for name in drawn(encoder.config, batch_of(*np.ones((2, 1, 3), int)))[1]
    }
    assert depths == {
        "token": 0, "source_position": 0, "target_position": 0, "enter_source": 1, "source_0": 1, "source_1": 2,
        "leave_source": 2, "enter_target": 3, "target_0": 3, "target_1": 4, "leave_target": 4,
    }  # fmt: skip
