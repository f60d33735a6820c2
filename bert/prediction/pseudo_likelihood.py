"""Pseudo-log-likelihood: how likely a masked-word model finds a sentence, each of its tokens masked in turn.

PLL(w) = sum_t log p(w_t | all other tokens of w), in nats; the pseudo-perplexity of a text of N tokens is
exp(-sum of PLL / N). Source: Salazar et al. 2020, "Masked Language Model Scoring", equations 1 and 3.
A model of blanks predicts all tokens of a sentence at once, each from all others.
Axes: N sentence, B row (a sentence with one token masked), P token predicted there, V vocabulary.
"""

import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np
from jax import Array

from bert.architectures import ModelConfig
from bert.data.padding import one_example_a_row, plan
from bert.model import forward, losses, matmul, stack
from bert.model.heads import reads_blanks
from bert.prediction.scores import Scorer
from bert.types import Batch, Params

_BLANKS = 64  # tokens of a row that are scored at once, so that their logits fit into memory


def log_likelihoods(scorer: Scorer, ids_N: Sequence[Sequence[int]]) -> np.ndarray:
    """float64 [N]: the PLL of sentences given as token ids without special tokens; of the empty one 0.

    A sentence beyond the model's positions is scored in parts, each without the others. Batches change no value.
    """
    template, limit = scorer.tokenizer.template, scorer.config.max_length
    first, special = len(template.before), template.special_tokens(pair=False)
    room = limit - special
    parts = [(n, template.join(ids[i : i + room])[0]) for n, ids in enumerate(ids_N) for i in range(0, len(ids), room)]
    of_blanks = reads_blanks(scorer.config)
    width = _BLANKS if of_blanks else 1
    masked = [
        (n, ids, range(place, min(place + width, first + len(ids) - special)))
        for n, ids in parts
        for place in range(first, first + len(ids) - special, width)
    ]
    params, totals_N = stack.by_layer(scorer.params, scorer.config), np.zeros(len(ids_N))
    pending: list[tuple[list[int], Array]] = []
    for chosen, length, size in plan([len(ids) for _, ids, _ in masked], limit, scorer.batch_size):
        batch = one_example_a_row([masked[i][1] for i in chosen], length, size)
        places_BP = np.zeros((size, min(width, length)), np.int32)
        for places_P, i in zip(places_BP, chosen, strict=False):
            places_P[: len(masked[i][2])] = masked[i][2]
        batch |= {"masked_positions": places_BP, "masked_ids": np.take_along_axis(batch["token_ids"], places_BP, 1)}
        if not of_blanks:
            np.put_along_axis(batch["token_ids"][: len(chosen)], places_BP[: len(chosen)], scorer.tokenizer.mask_id, 1)
        pending.append((chosen, _log_shares(scorer.config.dtype)(params, batch, config=scorer.config)))
        if len(pending) > 1:  # read one late: the device is busy with the next batch meanwhile
            _add(totals_N, masked, *pending.pop(0))
    for chosen, log_BP in pending:
        _add(totals_N, masked, chosen, log_BP)
    return totals_N


def _add(
    totals_N: np.ndarray, masked: Sequence[tuple[int, list[int], range]], chosen: list[int], log_BP: Array
) -> None:
    for i, log_P in zip(chosen, np.asarray(log_BP, np.float64), strict=False):
        totals_N[masked[i][0]] += log_P[: len(masked[i][2])].sum()


@functools.cache
def _log_shares(dtype: str) -> Callable[..., Array]:
    """What compiles and runs `_traced_log_shares` for a configuration of that dtype."""
    return jax.jit(_traced_log_shares, static_argnames="config", compiler_options=matmul.inference_options(dtype))


def _traced_log_shares(params: Params, batch: Batch, *, config: ModelConfig) -> Array:
    """float32 [B, P]: log p of ``masked_ids`` at ``masked_positions``."""
    logits_BPV = forward.traced_outputs(params, batch, config=config, wanted=("mlm_logits",))["mlm_logits"]
    return -losses.cross_entropy(logits_BPV, batch["masked_ids"])
