"""Pseudo-log-likelihood: how likely a masked-word model finds a sentence, each of its tokens masked in turn.

PLL(w) = sum_t log p(w_t | all other tokens of w), in nats; the pseudo-perplexity of a text of N tokens is
exp(-sum of PLL / N). Source: Salazar et al. 2020, "Masked Language Model Scoring", equations 1 and 3.
Axes: N sentence, B row (a sentence with one token masked), V vocabulary.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import Array

from bert.architectures import ModelConfig
from bert.data.padding import one_example_a_row, plan
from bert.model import forward, losses, matmul, stack
from bert.prediction.scores import Scorer
from bert.types import Batch, Params


def log_likelihoods(scorer: Scorer, ids_N: Sequence[Sequence[int]]) -> np.ndarray:
    """float64 [N]: the PLL of sentences given as token ids without special tokens; of the empty one 0.

    A sentence beyond the model's positions is scored in parts, each without the others. Batches change no value.
    """
    template, limit = scorer.tokenizer.template, scorer.config.max_length
    first, special = len(template.before), template.special_tokens(pair=False)
    room = limit - special
    parts = [(n, template.join(ids[i : i + room])[0]) for n, ids in enumerate(ids_N) for i in range(0, len(ids), room)]
    masked = [(n, ids, place) for n, ids in parts for place in range(first, first + len(ids) - special)]
    params, totals_N = stack.by_layer(scorer.params, scorer.config), np.zeros(len(ids_N))
    pending: list[tuple[list[int], Array]] = []
    for chosen, length, size in plan([len(ids) for _, ids, _ in masked], limit, scorer.batch_size):
        batch = one_example_a_row([masked[i][1] for i in chosen], length, size)
        places_B1, words_B1 = np.zeros((2, size, 1), np.int32)
        rows, places_B1[: len(chosen), 0] = np.arange(len(chosen)), [masked[i][2] for i in chosen]
        words_B1[rows, 0] = batch["token_ids"][rows, places_B1[rows, 0]]
        batch["token_ids"][rows, places_B1[rows, 0]] = scorer.tokenizer.mask_id
        batch |= {"masked_positions": places_B1, "masked_ids": words_B1}
        pending.append((chosen, _log_shares(scorer.config.dtype)(params, batch, config=scorer.config)))
        if len(pending) > 1:  # read one late: the device is busy with the next batch meanwhile
            _add(totals_N, masked, *pending.pop(0))
    for chosen, log_B in pending:
        _add(totals_N, masked, chosen, log_B)
    return totals_N


def _add(totals_N: np.ndarray, masked: Sequence[tuple[int, list[int], int]], chosen: list[int], log_B: Array) -> None:
    np.add.at(totals_N, [masked[i][0] for i in chosen], np.asarray(log_B, np.float64)[: len(chosen)])


@functools.cache
def _log_shares(dtype: str) -> Callable[..., Array]:
    """What compiles and runs `_traced_log_shares` for a configuration of that dtype."""
    return jax.jit(_traced_log_shares, static_argnames="config", compiler_options=matmul.inference_options(dtype))


def _traced_log_shares(params: Params, batch: Batch, *, config: ModelConfig) -> Array:
    """float32 [B]: log p of ``masked_ids`` at ``masked_positions``, one a row."""
    logits_B1V = forward.traced_outputs(params, batch, config=config, wanted=("mlm_logits",))["mlm_logits"]
    return -losses.cross_entropy(logits_B1V, batch["masked_ids"])[:, 0]
