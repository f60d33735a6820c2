"""Text generation with a cache: keys and values of all tokens so far, one compiled loop over new tokens.

`generate` continues prompts by a causal model, `translate` searches what an encoder-decoder makes of a source.

Axes: as in blocks.py; S place in the cache, U new token.

Source: Fan et al. 2018 (top-k); Holtzman et al. 2020 (top-p).
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from bert import architectures
from bert.architectures import ModelConfig
from bert.model import beam_search, heads, vocabulary
from bert.model.beam_search import Finished
from bert.model.decoders import DecoderState
from bert.types import Batch, Params


@functools.partial(jax.jit, static_argnames=("config", "new", "words", "greedy"))
def generate(
    params: Params,
    prompts_BT: Array,
    length_B: Array,
    key_B: Array,
    sampling: Params,
    *,
    config: ModelConfig,
    new: int,
    words: int,
    greedy: bool,
) -> tuple[Array, Array]:
    """(int32 [B, U] new tokens, int32 [B] how many of them are real): each prompt continued on its own. Compiled.

    Args:
      params: ``{"encoder": ..., "head": {"mlm": ...}}`` of a causal model.
      prompts_BT, length_B: token ids, from the left, and how many of each row are real, at least 1.
      key_B: a random key for each row.
      sampling: ``temperature``, ``top_k`` (0: all) and ``top_p``, scalars; ``stop``, the token that ends a text (-1:
        none), which is the last real one.
      new: U, at most so many; together with the longest prompt no more than the model's positions.
      words: entries of the vocabulary; later rows of the token table are never chosen.
      greedy: always the most probable token (of equal ones the first); no other setting but ``stop`` is read then.
    """
    B, T = prompts_BT.shape
    encoder = architectures.build(config)

    def extended(ids_BT: Array, positions_BT: Array, cache: Any) -> tuple[Array, Any]:
        batch = {"token_ids": ids_BT, "position_ids": positions_BT, "type_ids": jnp.zeros_like(ids_BT)}
        result: Any = encoder.apply({"params": params["encoder"]}, batch, cache, method="extend")
        return result

    def logits(hidden_BD: Array) -> Array:
        table_VD: Any = encoder.apply({"params": params["encoder"]}, method="token_table")
        scores: Any = heads.part("mlm", config).apply({"params": params["head"]["mlm"]}, hidden_BD[:, None], table_VD)
        return jnp.where(jnp.arange(config.vocab_size) < words, scores[:, 0], -jnp.inf)

    def chosen(hidden_BD: Array, number: Array) -> Array:
        if greedy:
            return logits(hidden_BD).argmax(-1).astype(jnp.int32)
        keys = jax.vmap(jax.random.fold_in, (0, None))(key_B, number)
        return jax.vmap(drawn, (0, 0, None))(keys, logits(hidden_BD), sampling)

    def step(state: Any) -> Any:
        number, ids_BU, count_B, running_B, hidden_BD, cache = state
        word_B = chosen(hidden_BD, number)
        ids_BU = ids_BU.at[:, number].set(jnp.where(running_B, word_B, 0))
        count_B = count_B + running_B
        running_B = running_B & (word_B != sampling["stop"])
        hidden_B1D, cache = extended(word_B[:, None], (length_B + number)[:, None], cache)
        return number + 1, ids_BU, count_B, running_B, hidden_B1D[:, 0], cache

    with jax.default_matmul_precision("highest"):
        empty: Any = encoder.apply({"params": params["encoder"]}, B, T + new, method="empty_cache")
        hidden_BTD, cache = extended(prompts_BT, jnp.tile(jnp.arange(T), (B, 1)), empty)
        last_BD = jnp.take_along_axis(hidden_BTD, (length_B - 1)[:, None, None], 1)[:, 0]
        zero_B = jnp.zeros((B,), jnp.int32)
        state = (jnp.int32(0), jnp.zeros((B, new), jnp.int32), zero_B, zero_B == 0, last_BD, cache)
        state = jax.lax.while_loop(lambda state: (state[0] < new) & state[3].any(), step, state)
    return state[1], state[2]


def drawn(key: Array, logits_V: Array, sampling: Batch) -> Array:
    """int32: a token drawn from the softmax of the logits over the temperature, of the ``top_k`` most probable tokens
    and, of these, of the fewest whose probabilities sum to ``top_p``."""
    order_V = jnp.argsort(-logits_V, stable=True)
    scores_V = logits_V[order_V] / sampling["temperature"]
    rank_V = jnp.arange(len(scores_V))
    scores_V = jnp.where((sampling["top_k"] == 0) | (rank_V < sampling["top_k"]), scores_V, -jnp.inf)
    shares_V = jax.nn.softmax(scores_V)
    before_V = jnp.cumsum(shares_V) - shares_V
    scores_V = jnp.where((rank_V == 0) | (before_V < sampling["top_p"]), scores_V, -jnp.inf)
    return order_V[jax.random.categorical(key, scores_V)].astype(jnp.int32)


@functools.partial(jax.jit, static_argnames=("config", "beams", "places", "words"))
def translate(
    params: Params,
    batch: Batch,
    limit_B: Array,
    alpha: Array,
    stop: Array,
    *,
    config: Any,
    beams: int,
    places: int,
    words: int,
) -> Finished:
    """The best targets of each source, by `beam_search.search`; one source a row. Compiled.

    Args:
      params: ``{"encoder": ...}`` of an encoder-decoder.
      limit_B, alpha, stop, beams, places: of the search.
      words: entries of the vocabulary; later rows of the token table are never chosen.
    """
    decoder = architectures.build(config)

    def call(method: str, *inputs: Any) -> Any:
        return decoder.apply({"params": params["encoder"]}, *inputs, method=method)

    def score(state: DecoderState, ids_R: Array, position: Array) -> tuple[Array, DecoderState]:
        hidden_RD, state = call("step", state, ids_R, position)
        table_VD, bias_V = call("output_projection")
        logits_RV = vocabulary.logits(hidden_RD, table_VD, bias_V, config.dtype)
        logits_RV = jnp.where(jnp.arange(config.vocab_size) < words, logits_RV, -jnp.inf)
        return jax.nn.log_softmax(logits_RV), state

    with jax.default_matmul_precision("highest"):
        state = call("begin", call("memory", batch), len(limit_B) * beams, places)
        ends = {"start": jnp.int32(config.start_id), "stop": stop}
        return beam_search.search(score, state, limit_B, alpha, beams=beams, places=places, **ends)
