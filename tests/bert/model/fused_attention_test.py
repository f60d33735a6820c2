"""Fused attention as far as it can be seen without a GPU: the program for one, its maths with another kernel in the
place of cuDNN's, and where it falls back to the core."""

import dataclasses
import re
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.bert_encoder import BertEncoder
from bert.architectures.transformer import SIZES
from bert.errors import InputError
from bert.model import attention as attention_module
from bert.model.attention import attention, fused_attention
from bert.model.pattern import Pattern

# Rows: packed, with padding; one example; padding alone; packed, full.
IDS_BT = np.array([[1] * 3 + [2] * 4 + [0] * 3, [1] * 10, [0] * 10, [1] * 2 + [2] * 5 + [3] * 3], np.int32)
PATTERN = Pattern(jnp.asarray(IDS_BT), jnp.asarray(IDS_BT))
FUSED = {"attention": "fused", "attention_dropout": 0.0, "dtype": "bfloat16"}


@pytest.fixture
def on_gpu(monkeypatch) -> None:
    """Programs are traced as on a GPU; JAX would ask for an installed cuDNN."""
    monkeypatch.setattr(attention_module, "_has_fused_attention", lambda: True)
    monkeypatch.setattr("jax._src.cudnn.fused_attention_stablehlo.check_cudnn_version", lambda: 91500)


def heads(length: int = 10, width: int = 8, dtype=jnp.bfloat16) -> list[jax.Array]:
    """Queries, keys and values [4, length, 2, width], large enough that attention is far from uniform."""
    rng = np.random.default_rng(0)
    return [jnp.asarray(2 * rng.standard_normal((4, length, 2, width)), dtype) for _ in range(3)]


def hidden_sum(encoder: BertEncoder):
    return lambda params, batch, key: encoder.apply(
        {"params": params}, batch, train=key is not None, rngs={} if key is None else {"dropout": key}
    )["tokens"].sum(dtype=jnp.float32)


def test_program_for_a_gpu(tiny, make_batch, examples, on_gpu):
    """Forward and backward call cuDNN's kernel, for packed rows too, and no array has queries, keys and heads."""
    batch, T = make_batch([examples[:3], examples[3:5]], 40), 40
    loss = hidden_sum(BertEncoder(dataclasses.replace(tiny.config, **FUSED)))
    given = (tiny.params["encoder"], batch, jax.random.key(0))

    for function, ends in ((loss, ("",)), (jax.grad(loss), ("", "Backward"))):
        program = jax.jit(function).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
        for end in ends:
            assert program.count(f"@__cudnn$fmhaScaleBiasSoftmax{end}(") == 1  # in the block that is scanned
        squares = set(re.findall(rf"tensor<([\dx]*){T}x{T}x\w+>", program))
        assert squares == {"2x", "2x1x"}  # rows, and one axis of length 1 for all heads


@pytest.mark.long
def test_equal_to_the_core(on_gpu, monkeypatch):
    """With JAX's own maths for cuDNN's, outputs and gradients are the core's within bfloat16; no loss reads padding."""
    public, asked = jax.nn.dot_product_attention, []

    def stand_in(*given, implementation, **named):
        asked.append(implementation)
        return public(*given, implementation="xla", **named)

    monkeypatch.setattr(jax.nn, "dot_product_attention", stand_in)
    read_BT11 = (IDS_BT > 0)[..., None, None]

    def mixed(which):
        return lambda q, k, v: jnp.where(read_BT11, which(q, k, v, PATTERN).astype(jnp.float32), 0.0)

    got, gradients = jax.vjp(mixed(fused_attention), *heads())
    wanted, wanted_gradients = jax.vjp(mixed(attention), *heads())
    upstream = np.random.default_rng(1).standard_normal(got.shape).astype(np.float32)
    assert asked == ["cudnn"]
    np.testing.assert_allclose(got, wanted, atol=0.03)
    for one, other in zip(gradients(upstream), wanted_gradients(upstream), strict=True):
        np.testing.assert_allclose(one.astype(jnp.float32), other.astype(jnp.float32), atol=0.15)


def test_each_query_has_a_key(on_gpu, monkeypatch):
    """The kernel is told the pairs of the core, and never a query without any key: its gradient could be NaN."""
    told = {}
    monkeypatch.setattr(jax.nn, "dot_product_attention", lambda q, k, v, **named: told.update(named))
    fused_attention(*heads(), PATTERN)  # type: ignore[call-arg]
    real_rows = IDS_BT.any(1)
    np.testing.assert_array_equal(told["mask"][real_rows], PATTERN.allowed()[real_rows])
    assert told["mask"].any(-1).all()


def test_without_a_gpu_it_is_the_core(tiny, make_batch, examples):
    """The program of a gradient is the same one, so every bit is."""
    batch, key = make_batch([examples[:3], examples[3:5]], 40), jax.random.key(0)

    def program(how: str) -> str:
        loss = hidden_sum(BertEncoder(dataclasses.replace(tiny.config, **FUSED | {"attention": how})))
        return jax.jit(jax.grad(loss)).lower(tiny.params["encoder"], batch, key).as_text()

    assert program("fused") == program("core")


@pytest.mark.parametrize(
    "changes", [{"dtype": jnp.float32}, {"length": 9}, {"length": 64}, {"length": 192}, {"width": 12}, {"width": 136}]
)
def test_arrays_that_cudnn_refuses_go_to_the_core(on_gpu, monkeypatch, changes):
    """Another dtype, lengths that are odd or 64 beyond a multiple of 128, and other head widths."""
    monkeypatch.delattr(jax.nn, "dot_product_attention")  # where it is asked, it is missed
    q, k, v = heads(**changes)
    ids_BT = jnp.ones(q.shape[:2], jnp.int32)
    assert jax.eval_shape(fused_attention, q, k, v, Pattern(ids_BT, ids_BT)).shape == q.shape


def test_split_heads_go_to_the_core(on_gpu):
    """Where the model axis of the mesh would cut through a head, the kernel cannot be split."""
    q_BTNH = jax.ShapeDtypeStruct((1, 128, 4, 64), jnp.bfloat16)
    for devices in (1, 2, 4, 8):
        with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((1, devices), ("data", "model"))):
            assert attention_module._cudnn_takes(q_BTNH, q_BTNH) == (devices <= 4)


@pytest.mark.parametrize(
    ("backend", "capability", "has_it"),
    [("gpu", "9.0", True), ("gpu", "12.0", True), ("gpu", "8.0", True), ("gpu", "7.5", False), ("gpu", "gfx942", False),
     ("cpu", "9.0", False), ("tpu", "9.0", False)],
)  # fmt: skip
def test_which_devices_have_it(monkeypatch, backend, capability, has_it):
    """NVIDIA's from Ampere on."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "local_devices", lambda: [types.SimpleNamespace(compute_capability=capability)])
    assert attention_module._has_fused_attention.__wrapped__() == has_it


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("length", [128, 512])
def test_released_sizes_are_taken(on_gpu, size, length):
    _, width, num_heads = SIZES[size]
    q_BTNH = jax.ShapeDtypeStruct((1, length, num_heads, width // num_heads), jnp.bfloat16)
    assert attention_module._cudnn_takes(q_BTNH, q_BTNH)


def test_dropout_on_weights_is_refused_in_training_alone(tiny, make_batch, examples):
    """A model that was trained with it can be run."""
    config = dataclasses.replace(tiny.config, attention="fused", attention_dropout=0.1)
    loss, batch = hidden_sum(BertEncoder(config)), make_batch([examples[:3], examples[3:5]], 40)
    params = tiny.params["encoder"]
    jax.eval_shape(loss, params, batch, None)
    with pytest.raises(InputError, match="attention is 'fused'"):
        jax.eval_shape(loss, params, batch, jax.random.key(0))
