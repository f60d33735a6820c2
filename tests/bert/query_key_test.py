"""Merged matrices give the scores of queries and keys, are split back where their rank allows it, and train."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bert
from bert import architectures
from bert.architectures.bert import BertConfig
from bert.architectures.merged import MergedBertConfig
from bert.architectures.recurrent import RecurrentConfig
from bert.errors import InputError
from bert.inference import from_params
from bert.model.attention import attention_scores
from bert.model.blocks import Block, MultiHeadAttention
from bert.model.sentence_encoder import SentenceEncoder
from bert.query_key import merged_model, split_model

TINY = pathlib.Path(__file__).resolve().parents[1] / "golden" / "tiny_bert"
# systems.md 5c, worked by hand: two columns of queries and of keys for four numbers a token
W_Q = np.array([[1.0, 0, 2, -1], [0, 1, 1, 0]])
W_K = np.array([[0.5, 1, 0, 0], [1, 0, -1, 2]])
MERGED = np.array(
    [[0.35355, 0.70711, 0, 0], [0.70711, 0, -0.70711, 1.41421], [1.41421, 1.41421, -0.70711, 1.41421],
     [-0.35355, -0.70711, 0, 0]]
)  # fmt: skip
TOKENS = np.array([[1.0, 0, 0, 1], [0, 1, 1, 0], [0.5, 0.5, -1, 2]])
SCORES = np.array([[0, 0, 0], [4.94975, 0, 8.83883], [-2.29810, -2.12132, -3.80070]])


@pytest.fixture(scope="module")
def tiny():
    return bert.load(TINY)


@pytest.fixture(scope="module")
def inside(tiny):
    """(what the attention of each layer reads [L, B, T, D], its weights [L, B, N, T, S]) of tiny BERT."""
    ids = np.random.default_rng(0).integers(5, 100, (3, 12))
    outputs = tiny.outputs(ids, look_inside=True)
    return outputs["hidden_states"][:-1], outputs["attentions"]


def with_matrices(WQ_NHD, bQ_NH, WK_NHD, bK_NH):
    """A model of one layer with these queries and keys, [N, H, D] and [N, H] each, and nothing else."""
    (N, H, D), layer = WQ_NHD.shape, {}
    for name, W_NHD, b_NH in (("query", WQ_NHD, bQ_NH), ("key", WK_NHD, bK_NH)):
        kernel = np.moveaxis(W_NHD, 2, 0).reshape(1, D, N * H)
        layer[name] = {"kernel": kernel.astype(np.float32), "bias": b_NH.reshape(1, N * H).astype(np.float32)}
    config = BertConfig(9, hidden_size=D, num_layers=1, num_heads=N, intermediate_size=4, max_position_embeddings=8)
    return from_params(config, {"encoder": {"blocks": {"attention": layer}}, "head": {}}, None)


def weights_of(W_DD, x_TD, u_D=0.0):
    scores_TT = x_TD @ W_DD @ x_TD.T + x_TD @ (np.zeros(x_TD.shape[-1]) + u_D)
    return np.asarray(jax.nn.softmax(jnp.asarray(scores_TT), axis=-1))


def test_the_worked_numbers():
    no_biases, (W_Q_NHD, W_K_NHD) = np.zeros((2, 2)), (np.stack([W, W]) for W in (W_Q, W_K))
    W_LNDD, u_LND = bert.merge_query_key(with_matrices(W_Q_NHD, no_biases, W_K_NHD, no_biases))
    assert W_LNDD.shape == (1, 2, 4, 4)
    for head in range(2):
        np.testing.assert_allclose(W_LNDD[0, head], MERGED, atol=1e-5)
        np.testing.assert_allclose(TOKENS @ W_LNDD[0, head] @ TOKENS.T, SCORES, atol=2e-5)
        assert np.linalg.matrix_rank(W_LNDD[0, head]) == 2
    assert not u_LND.any()


def test_the_arrays_of_the_reference(shared):
    """Weights with biases; without the vector u they would be others."""
    reference = np.load(shared / "golden2" / "attention" / "merged_query_key.npz")
    x_BTD, mask_BT = reference["x"], reference["mask"]
    model, N = with_matrices(*(reference[name] for name in ("WQ", "bQ", "WK", "bK"))), len(reference["WQ"])
    merged = bert.merge_query_key(model)
    np.testing.assert_allclose(merged.W[0], reference["Wt"], atol=1e-5)
    np.testing.assert_allclose(merged.u[0], reference["u"], atol=1e-5)
    np.testing.assert_allclose(merged.symmetric[0], reference["symmetric"], atol=1e-5)
    np.testing.assert_allclose(merged.antisymmetric[0], reference["antisymmetric"], atol=1e-5)
    singular_ND = np.linalg.svd(merged.W[0], compute_uv=False)
    np.testing.assert_allclose(singular_ND, reference["singular_values"], atol=1e-5)
    assert ((singular_ND > 1e-5).sum(-1) == reference["rank"]).all()
    for row, head in np.ndindex(len(x_BTD), N):
        x_TD = x_BTD[row, : mask_BT[row].sum()]
        T, W_DD, u_D = len(x_TD), merged.W[0, head], merged.u[0, head]
        expected_TT = reference["weights"][row, head, :T, :T]
        np.testing.assert_allclose(weights_of(W_DD, x_TD, u_D), expected_TT, atol=1e-5)
        without_TT = reference["weights_without_u"][row, head, :T, :T]
        np.testing.assert_allclose(weights_of(W_DD, x_TD), without_TT, atol=1e-5)
        assert np.abs(without_TT - expected_TT).max() > 0.01


def test_a_real_model_with_biases_attends_alike(tiny, inside):
    """Weights of every head within 1e-5; tiny BERT's biases matter, so without u they are not."""
    merged, (x_LBTD, weights_LBNTS) = bert.merge_query_key(tiny), inside
    without = 0.0
    for layer, row, head in np.ndindex(weights_LBNTS.shape[:3]):
        x_TD, W_DD, u_D = x_LBTD[layer, row], merged.W[layer, head], merged.u[layer, head]
        np.testing.assert_allclose(weights_of(W_DD, x_TD, u_D), weights_LBNTS[layer, row, head], atol=1e-5)
        without = max(without, np.abs(weights_of(W_DD, x_TD) - weights_LBNTS[layer, row, head]).max())
    assert without > 1e-4
    width = tiny.config.hidden_size // tiny.config.num_heads
    assert (np.linalg.svd(merged.W, compute_uv=False)[..., width:] < 1e-5).all()


def test_split_gives_the_scores_back_from_the_head_width_on(tiny, inside):
    merged, (x_LBTD, _) = bert.merge_query_key(tiny), inside
    width, x_TD = tiny.config.hidden_size // tiny.config.num_heads, x_LBTD[1, 0]

    def scores(rank: int) -> np.ndarray:
        split = bert.split_query_key(merged.W[1, 0], rank, merged.u[1, 0])
        q_TH, k_TH = x_TD @ split.query + split.query_bias, x_TD @ split.key
        return np.asarray(attention_scores(q_TH[None, :, None], k_TH[None, :, None]))[0, 0]

    exact = x_TD @ merged.W[1, 0] @ x_TD.T + x_TD @ merged.u[1, 0]
    np.testing.assert_allclose(scores(width), exact, atol=1e-5)
    np.testing.assert_allclose(scores(width + 3), scores(width), atol=1e-5)
    assert np.abs(scores(width - 1) - scores(width)).max() > 1e-4


def test_what_cannot_be_merged_or_split(tiny, monkeypatch):
    with pytest.raises(InputError, match="hidden states"):
        bert.merge_query_key(from_params(RecurrentConfig(9), {"encoder": {}, "head": {}}, None))
    monkeypatch.setattr(Block, "attention_class", functools.partial(MultiHeadAttention, rotary_base=1e4))
    with pytest.raises(InputError, match=r"tiny_bert: .*'bert' .*rotary"):
        bert.merge_query_key(tiny)
    for rank in (0, 5, 1.5):
        with pytest.raises(InputError, match=rf"rank is {rank}; .*1 .*4"):
            bert.split_query_key(MERGED, rank)
    with pytest.raises(InputError, match=r"W has shape \[4, 3\]"):
        bert.split_query_key(MERGED[:, :3], 2)
    with pytest.raises(InputError, match=r"u has shape \[3\]"):
        bert.split_query_key(MERGED, 2, np.zeros(3))
    for wrong in ([[1, 2], [3]], [["a"]], MERGED * 1j):
        with pytest.raises(InputError, match=r"W is .*numbers"):
            bert.split_query_key(wrong, 1)
    for name, values in (("W", (MERGED * np.nan, 2)), ("u", (MERGED, 2, np.full(4, np.inf)))):
        with pytest.raises(InputError, match=f"{name} holds .*finite"):
            bert.split_query_key(*values)


def test_a_merged_model_has_the_outputs_of_the_original_and_is_split_again(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny, "sentences", SentenceEncoder(("cls",)))
    assert split_model(merged_model(tiny)).sentences == tiny.sentences  # which says what `embed` gives
    monkeypatch.undo()
    ids = np.random.default_rng(1).integers(5, 100, (2, 9))
    outputs, merged = tiny.outputs(ids), merged_model(tiny)
    for model in (merged, bert.load(bert.save(merged, tmp_path / "merged")), split_model(merged)):
        for name, value in model.outputs(ids).items():
            np.testing.assert_allclose(value, outputs[name], atol=1e-5, err_msg=name)
    assert split_model(merged).config == tiny.config
    again = bert.merge_query_key(merged)
    np.testing.assert_array_equal(again.W, bert.merge_query_key(tiny).W)
    with pytest.raises(InputError, match=r"'bert' .*'bert-merged'"):
        split_model(tiny)
    attention = merged.params["encoder"]["blocks"]["attention"]
    attention["merged"]["kernel"] = attention["merged"]["kernel"] + np.float32(0.1) * np.eye(
        *attention["merged"]["kernel"].shape[1:], dtype=np.float32
    )
    with pytest.raises(InputError, match=r"layer \d, head 0 .*rank .*8 columns"):
        split_model(merged)


def test_parameters_and_arithmetic():
    """2 K I J a layer against K J^2 (systems.md 5c: 1,179,648 and 7,077,888 for BERT base), equal at I = J / 2."""
    sizes = {"vocab_size": 9, "num_layers": 1, "intermediate_size": 4, "max_position_embeddings": 8}
    counts = {}
    for heads, width in ((12, 768), (2, 16)):
        for kind in (BertConfig, MergedBertConfig):
            config = kind(**sizes, num_heads=heads, hidden_size=width)
            encoder = architectures.build(config)
            batch = {name: jnp.ones((1, 2), jnp.int32) for name in ("token_ids", "type_ids", "position_ids")}
            batch["example_ids"] = batch["token_ids"]
            shapes = jax.eval_shape(encoder.init, jax.random.key(0), batch)["params"]["blocks"]["attention"]
            counts[heads, config.model_type] = sum(
                shapes[name]["kernel"].size for name in ("query", "key", "merged") if name in shapes
            )
    assert counts[12, "bert"] == 1_179_648
    assert counts[12, "bert-merged"] == 7_077_888
    assert counts[2, "bert"] == counts[2, "bert-merged"]
    plain, merged = (kind(**sizes, num_heads=12, hidden_size=768) for kind in (BertConfig, MergedBertConfig))
    more = 128 * (merged.matmul_flops_per_token(128) - plain.matmul_flops_per_token(128))
    assert more == pytest.approx((1811.9e6 - 302.0e6) + (302.0e6 - 25.2e6), rel=1e-3)
    with pytest.raises(InputError, match="is_decoder is True"):
        MergedBertConfig(9, is_decoder=True)
