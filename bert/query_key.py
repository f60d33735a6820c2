"""Queries and keys of each head merged into one matrix, which does not depend on the basis that both were learnt in.

With ``q = W_Q x + b_Q`` and ``k = W_K y + b_K``, the score of a head is ``x W~ y + u y``, and terms that are equal for
all keys ``y``, which the softmax takes away: ``W~ = W_Q^T W_K / sqrt(H)``, ``u = b_Q W_K / sqrt(H)``.
Axes: L layer, N head, D width of what attention reads (twice in W~: of the query's side, then of the key's), H head
width.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from bert import architectures
from bert.architectures.bert import BertConfig
from bert.architectures.merged import MergedBertConfig
from bert.attention_steps import head_count
from bert.errors import InputError, check_range, short_repr
from bert.inference import LoadedModel, from_params
from bert.model import forward
from bert.types import Params

_EXACT = 1e-5  # what may be lost of a matrix or vector that is split, as a share


class MergedQueryKey(NamedTuple):
    """One matrix and one vector for each head of each layer, float32: W [L, N, D, D], u [L, N, D]."""

    W: np.ndarray
    u: np.ndarray

    @property
    def symmetric(self) -> np.ndarray:
        """[L, N, D, D]: the part with which two vectors attend to each other alike."""
        return (self.W + self.W.swapaxes(-1, -2)) / 2

    @property
    def antisymmetric(self) -> np.ndarray:
        """[L, N, D, D]: the part with which one attends to the other as much as it is turned away; 0 for a vector and
        itself."""
        return (self.W - self.W.swapaxes(-1, -2)) / 2


class SplitQueryKey(NamedTuple):
    """Kernels of queries and keys [..., D, H] and the queries' bias [..., H], for attention scaled by 1 / sqrt(H)."""

    query: np.ndarray
    key: np.ndarray
    query_bias: np.ndarray


def merge_query_key(model: LoadedModel) -> MergedQueryKey:
    """W~ and u of all heads of a model of `bert.load`, of any kind that shows its layers.

    They take ``4 L N D^2`` bytes, 340 MB for BERT base. Raises InputError for an encoder without such layers, and for
    one with rotary positions, which turn queries and keys between the two matrices.
    """
    attention, N = _attention_of(model), head_count(model.config)
    if "merged" in attention:
        kernel_LDM, bias_LM = attention["merged"]["kernel"], attention["merged"]["bias"]
        return MergedQueryKey(_by_head(kernel_LDM, N), bias_LM.reshape(len(bias_LM), N, -1))
    q_LNDH, k_LNDH = (_by_head(attention[name]["kernel"], N) for name in ("query", "key"))
    bias_LD = attention["query"]["bias"]
    bias_LN1H = bias_LD.reshape(len(bias_LD), N, 1, -1)
    k_LNHD = k_LNDH.swapaxes(-1, -2) * np.float32(1 / math.sqrt(q_LNDH.shape[-1]))
    return MergedQueryKey(q_LNDH @ k_LNHD, (bias_LN1H @ k_LNHD)[..., 0, :])


def split_query_key(W: np.ndarray, rank: int, u: np.ndarray | None = None) -> SplitQueryKey:
    """Queries and keys of that head width whose scores are nearest to those of W~, by its singular values.

    They are equal where no W~ has a higher rank, and ``u`` is a mixture of the keys' columns, as `merge_query_key` has
    it; which basis they stand in is arbitrary.

    Args:
      W: float [..., D, D].
      rank: the head width, from 1 to D.
      u: float [..., D]; None: zeros.
    """
    W = _numbers("W", W)
    if W.ndim < 2 or W.shape[-1] != W.shape[-2]:
        raise InputError(f"W has shape {list(W.shape)}; it must be [..., D, D], a square matrix for each head")
    check_range("rank", rank, at_least=1, at_most=W.shape[-1], whole=True)
    u = np.zeros(W.shape[:-1], W.dtype) if u is None else _numbers("u", u)
    if u.shape != W.shape[:-1]:
        raise InputError(f"u has shape {list(u.shape)}, W {list(W.shape)}; u must have that without its last axis")
    left, singular, right = np.linalg.svd(W)
    half = np.sqrt(singular[..., None, :rank]) * rank**0.25  # the scores are divided by sqrt(rank)
    query, key = left[..., :rank] * half, right[..., :rank, :].swapaxes(-1, -2) * half
    bias = (np.linalg.pinv(key) @ u[..., None])[..., 0] * math.sqrt(rank)
    return SplitQueryKey(query, key, bias.astype(query.dtype))


def _numbers(name: str, values: Any) -> np.ndarray:
    """A float array, float64 unless it is float32. InputError, naming it, for what is no finite numbers."""
    try:
        array = np.asarray(values)
        array = array if array.dtype == np.float32 else array.astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InputError(f"{name} is {short_repr(values)}; it must be an array of numbers") from None
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds numbers that are not finite; mend them")
    return array


def merged_model(model: LoadedModel) -> LoadedModel:
    """The model as a ``bert-merged`` one, with the same outputs up to rounding, to train on or to look at.

    Raises InputError as `merge_query_key` does, and for what is no BERT encoder.
    """
    merged = merge_query_key(model)
    config = _as_kind(model, BertConfig, MergedBertConfig)
    L, N, D, _ = merged.W.shape
    weights = {"kernel": np.moveaxis(merged.W, 1, 2).reshape(L, D, N * D), "bias": merged.u.reshape(L, N * D)}
    return _with_scores(model, config, {"merged": weights})


def split_model(model: LoadedModel) -> LoadedModel:
    """The BERT with the outputs of a ``bert-merged`` model up to rounding, which transformers reads when it is saved.

    Raises InputError for a model whose matrices have a higher rank than a BERT's heads can have.
    """
    config, merged = _as_kind(model, MergedBertConfig, BertConfig), merge_query_key(model)
    L, N, D, _ = merged.W.shape
    H = D // N
    split = split_query_key(merged.W, H, merged.u)
    singular_LNK = np.linalg.svd(merged.W, compute_uv=False)
    whole_LN = np.maximum(np.linalg.norm(singular_LNK, axis=-1), np.finfo(np.float32).tiny)
    rest_LN = np.linalg.norm(singular_LNK[..., H:], axis=-1) / whole_LN
    back_LND = (split.key @ split.query_bias[..., None])[..., 0] / math.sqrt(H)
    rest_LN = np.maximum(rest_LN, np.abs(back_LND - merged.u).max(-1) / max(1.0, float(np.abs(merged.u).max())))
    if rest_LN.max() > _EXACT:
        layer, head = (int(i) for i in np.unravel_index(rest_LN.argmax(), rest_LN.shape))
        raise InputError(
            f"{model.source}: layer {layer}, head {head} is of higher rank than the {H} columns of a BERT's queries "
            f"(what is beyond is {rest_LN.max():.2g} of it), so transformers cannot hold the model; keep its own format"
        )
    kernels = {"query": split.query, "key": split.key}
    kernels = {name: np.moveaxis(kernel, 1, 2).reshape(L, D, D) for name, kernel in kernels.items()}
    biases = {"query": split.query_bias.reshape(L, D), "key": np.zeros((L, D), np.float32)}
    return _with_scores(
        model, config, {name: {"kernel": kernels[name], "bias": biases[name]} for name in ("query", "key")}
    )


def _as_kind(model: LoadedModel, of: type[BertConfig], to: type[BertConfig]) -> BertConfig:
    if type(model.config) is not of:
        raise InputError(f"{model.source}: is a {model.config.model_type!r} encoder; give a {of.model_type!r} one")
    return to(**{field.name: getattr(model.config, field.name) for field in dataclasses.fields(to)})


def _with_scores(model: LoadedModel, config: BertConfig, weights: Params) -> LoadedModel:
    """The model with other parameters of the scores."""
    encoder = model.params["encoder"]
    attention = {name: encoder["blocks"]["attention"][name] for name in ("value", "output")} | weights
    encoder = {**encoder, "blocks": {**encoder["blocks"], "attention": attention}}
    params = {**model.params, "encoder": encoder}
    made = from_params(config, params, model.tokenizer, labels=model.labels, extra=model.extra)
    made.sentences = model.sentences
    return made


def _attention_of(model: LoadedModel) -> Params:
    """The parameters of attention, stacked by layer; InputError for what has none that can be merged."""
    config = model.config
    forward.check_looking_inside(config)
    encoder: Any = architectures.build(config)
    block = encoder.block_class(config).bind({})
    if getattr(block.attention, "rotary_base", None) is not None:
        raise InputError(
            f"{model.source}: a {config.model_type!r} encoder has rotary positions, which turn queries and keys behind "
            "their matrices, so these cannot be merged; look at its scores by model.attention"
        )
    attention: Params = model.params["encoder"]["blocks"]["attention"]
    return attention


def _by_head(kernel_LDM: np.ndarray, N: int) -> np.ndarray:
    """[L, N, D, M / N] of the kernels of all heads side by side."""
    L, D, _ = kernel_LDM.shape
    return np.moveaxis(kernel_LDM.reshape(L, D, N, -1), 2, 1)
