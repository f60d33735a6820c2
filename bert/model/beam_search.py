"""Beam search: the most probable texts that a decoder of one word after another can write, one compiled loop.

Not here: which decoder that is (decoding.py), and texts (bert/prediction/).
Axes: B row, K hypothesis (beam), R all hypotheses of all rows, U position, V vocabulary, W candidate.

Source: Wu et al. 2016, "Google's neural machine translation system", section 7 (length penalty).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from bert.model.decoders import DecoderState


class Finished(NamedTuple):
    """Finished hypotheses, the best first; where a row has fewer, the last have score -inf and length 0."""

    ids_BKU: Array  # int32, 0 behind the last word
    length_BK: Array  # int32, the token that ends a text counted
    score_BK: Array  # float32: log-probability in nats / length penalty


class _Search(NamedTuple):
    """What changes from word to word. Live hypotheses may be extended."""

    position: Array
    live_ids_BKU: Array
    live_score_BK: Array  # log-probability; -inf: there is none
    word_BK: Array  # the last word of each live one
    finished: Finished
    running_B: Array
    state: DecoderState


def length_penalty(length: Any, alpha: Any) -> Any:
    """((5 + length) / 6) ^ alpha, by which log-probabilities are divided."""
    return ((5.0 + length) / 6.0) ** alpha


def search(
    score: Callable[[DecoderState, Array, Array], tuple[Array, DecoderState]],
    state: DecoderState,
    limit_B: Array,
    alpha: Array,
    *,
    beams: int,
    places: int,
    start: Array,
    stop: Array,
) -> Finished:
    """The best ``beams`` texts of each row.

    Of the 2 K best extensions of a row's live hypotheses those that end are kept where they are among its K best
    finished ones, and the best K others live on. A row is done when it has K finished ones, the best of which no live
    one can reach any more, or at its limit, where the live ones end, too, unless that is so. Of one hypothesis the best
    extension alone counts: that is greedy search.

    Args:
      score: (state, words [R], position) -> (log-probabilities float32 [R, V] of the next word, state).
      state: before the first word, of R = B K hypotheses.
      limit_B: int32, words of a row's texts at most, the one that ends them counted: 1 to ``places``.
      alpha: of `length_penalty`; 0: none.
      start, stop: the tokens before a text, and at its end.
    """
    B, K, U, best = len(limit_B), beams, places, 2 * beams if beams > 1 else 1
    penalty_U = length_penalty(1.0 + jnp.arange(U), alpha)
    least_penalty_B = penalty_U[limit_B - 1]

    def extended(search: _Search) -> _Search:
        u = search.position
        log_p_RV, state = score(search.state, search.word_BK.reshape(-1), u)
        total_BKV = search.live_score_BK[..., None] + log_p_RV.reshape(B, K, -1)
        V = total_BKV.shape[-1]
        score_BW, place_BW = jax.lax.top_k(total_BKV.reshape(B, -1), min(best, K * V))
        parent_BW, word_BW = place_BW // V, (place_BW % V).astype(jnp.int32)
        ids_BWU = jnp.take_along_axis(search.live_ids_BKU, parent_BW[..., None], 1).at[:, :, u].set(word_BW)
        ends_BW = word_BW == stop
        live_BK, chosen_BK = jax.lax.top_k(jnp.where(ends_BW, -jnp.inf, score_BW), K)
        parent_BK, word_BK = (jnp.take_along_axis(x, chosen_BK, 1) for x in (parent_BW, word_BW))
        live_ids_BKU = jnp.take_along_axis(ids_BWU, chosen_BK[..., None], 1)
        of_parent_R = (jnp.arange(B)[:, None] * K + parent_BK).reshape(-1)
        finished = _with(search.finished, ids_BWU, jnp.where(ends_BW, score_BW, -jnp.inf) / penalty_U[u], u + 1)
        reachable_B = (finished.score_BK[:, -1] == -jnp.inf) | (
            finished.score_BK[:, 0] < live_BK[:, 0] / least_penalty_B
        )
        at_limit_B = u + 1 >= limit_B
        cut_BK = jnp.where((reachable_B & at_limit_B)[:, None], live_BK, -jnp.inf)
        finished = _with(finished, live_ids_BKU, cut_BK / penalty_U[u], u + 1)
        running_B = search.running_B & reachable_B & ~at_limit_B
        # A row that is done stays as it is, whatever its neighbours do.
        finished = jax.tree.map(functools.partial(_chosen, search.running_B), finished, search.finished)
        moving = jax.tree.map(lambda x: x[of_parent_R], state.moving)
        return _Search(u + 1, live_ids_BKU, live_BK, word_BK, finished, running_B, state._replace(moving=moving))

    none_BKU = jnp.zeros((B, K, U), jnp.int32)
    nothing_BK = jnp.full((B, K), -jnp.inf)
    finished = Finished(none_BKU, jnp.zeros((B, K), jnp.int32), nothing_BK)
    first_BK = jnp.broadcast_to(start, (B, K)).astype(jnp.int32)
    # One hypothesis, the empty text: K of them would fill the beam with copies.
    begun = _Search(
        jnp.int32(0), none_BKU, nothing_BK.at[:, 0].set(0.0), first_BK, finished, jnp.ones((B,), bool), state
    )
    return jax.lax.while_loop(lambda search: search.running_B.any(), extended, begun).finished


def _with(finished: Finished, ids_BWU: Array, score_BW: Array, length: Array) -> Finished:
    """The best of a row's finished texts and of more, all of one length; of equal ones the first."""
    more = Finished(ids_BWU, jnp.where(score_BW > -jnp.inf, length, 0), score_BW)
    ids, lengths, scores = (jnp.concatenate(pair, axis=1) for pair in zip(finished, more, strict=True))
    score_BK, order_BK = jax.lax.top_k(scores, finished.score_BK.shape[1])
    ids_BKU = jnp.take_along_axis(ids, order_BK[..., None], 1)
    return Finished(ids_BKU, jnp.take_along_axis(lengths, order_BK, 1), score_BK)


def _chosen(first_B: Array, ours: Array, others: Array) -> Array:
    """Each row of ``ours`` or of ``others``."""
    return jnp.where(first_B.reshape(-1, *[1] * (ours.ndim - 1)), ours, others)
