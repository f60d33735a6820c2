"""The recurrent encoder-decoder against reference arrays: states, attention, loss and gradients; its configuration."""

import dataclasses

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert import architectures
from bert.architectures.recurrent_decoder import RecurrentDecoderConfig
from bert.architectures.recurrent_decoder_modules import ends_of
from bert.data.sequence_pairs import join
from bert.errors import InputError
from bert.model import vocabulary
from bert.model.decoders import Memory
from bert.model.teacher_forcing import TeacherForced

# Of the reference arrays: states of 10 from the source, 8 of the decoder, vectors of 7, 11 words.
BAHDANAU = RecurrentDecoderConfig(
    11, embedding_size=7, hidden_size=10, decoder_size=8, attention_size=9, output_size=6, tied=False,
    hidden_dropout=0.0,
)  # fmt: skip
BILINEAR = RecurrentDecoderConfig(
    11, embedding_size=7, hidden_size=10, decoder_size=8, output_size=7, score="bilinear", output="linear",
    reset="after", hidden_dropout=0.0,
)  # fmt: skip


def reference(shared, name):
    folder = shared / "golden2" / "seq2seq"
    return load_file(folder / f"{name}.safetensors"), dict(np.load(folder / f"{name}.npz"))


def kernel(*tensors):
    """The kernel of matrices whose outputs lie side by side."""
    return {"kernel": np.concatenate(tensors).T}


def with_bias(kernel, bias=0.0):
    width = kernel["kernel"].shape[1]
    return kernel | {"bias": np.broadcast_to(np.asarray(bias, np.float32), (width,))}


def bahdanau_tree(w):
    """The decoder's part of the parameters, of the reference's weights or of their gradients."""
    attention = {"query": with_bias(kernel(w["Wa"])), "key": kernel(w["Ua"]), "vector": {"kernel": w["va"][:, None]}}
    return {
        "first": with_bias(kernel(w["Ws"])),
        "word": with_bias(kernel(w["Wr"], w["Wu"], w["W"])),
        "context": kernel(w["Cr"], w["Cu"], w["C"]),
        "state": kernel(w["Ur"], w["Uu"], w["U"]),
        "attention": attention,
        "from_state": with_bias(kernel(w["Uo"])),
        "from_word": kernel(w["Vo"]),
        "from_context": kernel(w["Co"]),
    }


def bilinear_tree(w):
    context, word = np.split(w["W_ih"], [10], axis=1)
    return {
        "first": with_bias({"kernel": np.zeros((5, 8), np.float32)}),
        "word": with_bias(kernel(word), w["b_ih"]),
        "context": kernel(context),
        "state": with_bias(kernel(w["W_hh"]), w["b_hh"]),
        "attention": {"key": {"kernel": w["Wkey"].T}},
        "from_state": with_bias(kernel(w["Wauto"])),
    }


def bahdanau(w):
    """The parameters of the reference's weights, or its gradients in that form."""
    tables = {"target_token": {"embedding": w["E"]}, "output_token": {"embedding": w["Wo"]}}
    return {"decoder": bahdanau_tree(w), **tables}


def bilinear(w):
    return {"decoder": bilinear_tree(w), "source": {"token": {"embedding": w["e"]}}}


def found(config, params, arrays):
    """(attention [B, U, S], logits [B, U, V], loss, its gradients) of the words after a memory."""
    words_BU = arrays["y"].astype(np.int32)
    position_BU = np.tile(np.arange(words_BU.shape[1]), (len(words_BU), 1))
    batch = {"target_ids": words_BU, "target_position_ids": position_BU, "target_example_ids": np.ones_like(words_BU)}
    memory, model = Memory(arrays["z"], arrays["mask"].astype(np.int32)), architectures.build(config)

    def loss(params):
        call = lambda method, *inputs: model.apply({"params": params}, *inputs, method=method)  # noqa: E731
        table_VD, bias_V = call("output_projection")
        scored = (call("teacher_forced", memory, batch), table_VD, bias_V)
        nats_BU, _, _ = vocabulary.smoothed_cross_entropy(*scored, words_BU, "float32", 0.0)
        return nats_BU.mean(), (call("attention", memory, batch)[:, 0], vocabulary.logits(*scored, "float32"))

    (value, (weights_BUS, logits_BUV)), grads = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    return weights_BUS, logits_BUV, value, grads


@pytest.mark.parametrize("name", ["bahdanau", "bilinear"])
def test_attention_logits_loss_and_gradients_are_those_of_the_reference(shared, name):
    """Two sources, the second with padding, and three words each."""
    config, tree_of = {"bahdanau": (BAHDANAU, bahdanau), "bilinear": (BILINEAR, bilinear)}[name]
    w, want = reference(shared, f"{name}_decoder")
    params = tree_of(w)
    if name == "bilinear":  # its first state is given: so is that which the source's last backward state makes
        backward = want["z"][:, 0, 5:]
        params["decoder"]["first"]["kernel"] = np.linalg.pinv(backward) @ np.arctanh(want["h0"])
    weights_BUS, logits_BUV, loss, grads = found(config, params, want)
    np.testing.assert_allclose(weights_BUS, want["a"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(logits_BUV, want["logits"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(loss, want["loss"], rtol=1e-5)
    of_reference = {key: want.get(f"grad|{key}", np.nan) for key in w}
    assert not any(np.isnan(value).any() for value in of_reference.values())
    wanted = tree_of(of_reference)

    def compare(path, ours, theirs):
        if "bias" not in str(path) or name == "bilinear":
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5, err_msg=str(path))

    if name == "bilinear":
        for tree in (grads, wanted):
            del tree["decoder"]["first"], tree["decoder"]["from_state"]["bias"]
    jax.tree_util.tree_map_with_path(compare, grads, wanted)


def sizes_of(config, biases=False):
    """How many numbers the parameters have, by their paths, biases left out."""
    ids = np.ones((1, 2), np.int32)
    batch = {"token_ids": ids, "position_ids": ids, "example_ids": ids}
    batch |= {"target_ids": ids, "target_position_ids": ids, "target_example_ids": ids}
    shapes = jax.eval_shape(TeacherForced(config).init, jax.random.key(0), batch)["params"]["encoder"]
    named = {jax.tree_util.keystr(path, simple=True, separator="/"): x for path, x in jax.tree.leaves_with_path(shapes)}
    return {path: leaf.size for path, leaf in named.items() if biases or not path.endswith("bias")}


@pytest.mark.parametrize("config", [BAHDANAU, BILINEAR])
def test_the_encoder_by_itself_has_all_parameters(config):
    """What is written and read back is found so; with a table for each side and with one."""
    ids = np.ones((1, 2), np.int32)
    batch = {"token_ids": ids, "position_ids": ids, "example_ids": ids}
    shapes = jax.eval_shape(architectures.build(config).init, jax.random.key(0), batch)["params"]
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == sum(sizes_of(config, biases=True).values())


def test_parameters_are_those_of_the_published_size():
    """RNNsearch with 30,000 words of each side: 80,401,000 without biases, in the parts of the paper's appendix."""
    config = RecurrentDecoderConfig(
        30_000, 620, 2000, decoder_size=1000, attention_size=1000, output_size=500, tied=False
    )
    sizes = sizes_of(config)
    parts = {
        "source/token": 18_600_000, "target_token": 18_600_000, "output_token": 15_000_000, "source/": 9_720_000,
        "decoder/attention": 3_001_000, "decoder/first": 1_000_000, "decoder/from_": 3_620_000, "decoder/": 10_860_000,
    }  # fmt: skip
    found = dict.fromkeys(parts, 0)
    for path, size in sizes.items():
        found[next(part for part in parts if path.startswith(part))] += size
    assert found == parts
    assert sum(sizes.values()) == 80_401_000


def test_config_json_holds_all_that_decides_the_weights_meaning():
    config = dataclasses.replace(BAHDANAU, cell="lstm", reset="after", score="bilinear", output="linear", start_id=7)
    values = config.to_json()
    assert architectures.config_from_json(values) == dataclasses.replace(config, dtype="float32")
    assert RecurrentDecoderConfig.json_notes(values) == []
    with pytest.raises(InputError, match=r"'rnn-encoder-decoder' .*finetune"):
        architectures.check_objective(config, "mlm")
    assert architectures.heads_of(config) == "none"
    assert architectures.packs(config)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"score": "cosine"}, r"score .*'cosine'.*bilinear"),
        ({"reset": "never"}, r"reset .*'never'.*before"),
        ({"output": "soft"}, r"output .*'soft'.*deep"),
        ({"score": "dot"}, r"decoder_size is 8 and hidden_size 10.*bilinear"),
        ({"tied": True}, r"output_size is 6 and embedding_size 7.*tied=False"),
        ({"hidden_size": 11}, r"hidden_size is 11.*even.*12"),
        ({"start_id": 11}, "start_id is 11"),
        ({"attention_size": 0}, "attention_size is 0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, said):
    with pytest.raises(InputError, match=said):
        dataclasses.replace(BAHDANAU, **changes)
    with pytest.raises(InputError, match=rf"^my\.json: .*{said}"):
        architectures.config_from_json(BAHDANAU.to_json() | changes, source="my.json")


def test_depths_run_from_the_embeddings_to_the_decoder():
    config = dataclasses.replace(BAHDANAU, num_layers=2)
    encoder = architectures.build(config)
    depths = {path: encoder.depth_of(path.split("/")) for path in sizes_of(config)}
    assert depths["source/token/embedding"] == depths["target_token/embedding"] == 0
    assert depths["source/forward_0/input/kernel"] == depths["source/backward_0/state/kernel"] == 1
    assert depths["source/backward_1/input/kernel"] == 2
    assert {depth for path, depth in depths.items() if path.startswith(("decoder", "output"))} == {3}


def test_a_linear_output_does_not_read_the_start_token():
    """Its first word is scored by the first state; of a deep output it is read."""
    for config, reads in ((dataclasses.replace(BILINEAR, tied=False), False), (BAHDANAU, True)):
        encoder, ids_BS = architectures.build(config), np.ones((1, 3), np.int32)
        batch = {"token_ids": ids_BS, "position_ids": np.arange(3)[None], "example_ids": ids_BS}
        params = jax.jit(encoder.init)(jax.random.key(0), batch)["params"]

        @jax.jit
        def first_and_second(params, encoder=encoder, batch=batch):
            """Of two hypotheses, which read one word each."""
            call = lambda method, *inputs: encoder.apply({"params": params}, *inputs, method=method)  # noqa: E731
            state = call("begin", call("memory", batch), 2, 5)
            return [call("step", state, np.array([1, 4]), np.int32(position))[0] for position in (0, 1)]

        first_RD, second_RD = first_and_second(params)
        assert (np.abs(first_RD[0] - first_RD[1]).max() > 1e-4) == reads
        assert np.abs(second_RD[0] - second_RD[1]).max() > 1e-4


def test_the_vector_of_a_source_is_what_both_directions_end_with():
    """Of rows with several pairs: the states that heads read of an encoder of two sides for a whole example."""
    encoder = architectures.build(dataclasses.replace(BAHDANAU, score="none"))
    batch = join([[3, 4, 5], [6, 2], [7]], [[8], [9, 2], [3]]).assembled([np.array([2, 0]), np.array([1])], 5, 2, 2)
    params = jax.jit(encoder.init)(jax.random.key(0), batch)["params"]

    @jax.jit
    def vectors(params):
        call = lambda *inputs, **more: encoder.apply({"params": params}, *inputs, **more)  # noqa: E731
        memory = call(batch, method="memory")
        reads_BUS = batch["target_example_ids"][:, :, None] == memory.example_ids_BS[:, None]
        return ends_of(memory, reads_BUS), call(batch, reads={"examples": None})["examples"]

    found_BUC, wanted_BEC = vectors(params)
    assert batch["target_example_ids"][0, :2].tolist() == [1, 2]
    np.testing.assert_array_equal(found_BUC[0, :2], wanted_BEC[0])
    np.testing.assert_array_equal(found_BUC[1, :2], np.stack([wanted_BEC[1, 0]] * 2))
    assert np.abs(wanted_BEC[0, 0] - wanted_BEC[0, 1]).max() > 1e-3
