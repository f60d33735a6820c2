"""Continues texts with a causal model: settings, prompts as batches, and new tokens as text.

Axes: N text, B row, T position.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from bert.architectures import ModelConfig
from bert.data.padding import batch_rows, bucket_length
from bert.errors import InputError, check_range
from bert.model import decoding
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Params


@dataclasses.dataclass(frozen=True)
class GenerationSettings:
    """How the next token is chosen, again and again."""

    max_new_tokens: int = 50  # at most; a text ends before where the model ends it
    temperature: float = 0.0  # 0: always the most probable token; else drawn, from the softmax of logits / temperature
    top_k: int = 0  # draw among so many of the most probable tokens; 0: all
    top_p: float = 1.0  # of these, among the fewest whose probabilities sum to it
    seed: int = 0  # of the draws

    def __post_init__(self) -> None:
        check_range("max_new_tokens", self.max_new_tokens, at_least=1, whole=True)
        if self.temperature != 0:  # quotients by less are infinite in float32, and nothing can be drawn
            check_range("temperature", self.temperature, at_least=1e-6, below=3e38, hint="; or 0: the most probable")
        check_range("top_k", self.top_k, at_least=0, at_most=(1 << 31) - 1, whole=True)
        check_range("top_p", self.top_p, above=0, at_most=1)
        check_range("seed", self.seed, at_least=0, at_most=(1 << 32) - 1, whole=True)
        if not self.temperature and (self.top_k or self.top_p < 1):
            name = "top_k" if self.top_k else "top_p"
            raise InputError(f"{name} is {getattr(self, name)}, but nothing is drawn with temperature 0; set it to 1")


def continued_ids(
    params: Params,
    config: ModelConfig,
    prompts: Sequence[Sequence[int]],
    settings: GenerationSettings,
    *,
    words: int,
    stop: int = -1,
    batch_size: int = 32,
) -> list[list[int]]:
    """The new tokens of each prompt, with the one that ends it.

    They depend on the prompt, its place in the list and the settings, not on the other prompts or ``batch_size``.
    Raises InputError for an empty prompt, and where prompt and new tokens have no room in the model's positions.
    """
    new = settings.max_new_tokens
    for i, ids in enumerate(prompts):
        if not len(ids):
            raise InputError(f"text {i} is empty; give it a word to continue")
        if len(ids) + new > config.max_length:
            room = f"the model has {config.max_length} positions"
            what = f"text {i} has {len(ids)} tokens, and with {new} new ones {len(ids) + new}"
            raise InputError(f"{what}, but {room}; shorten it, or set max_new_tokens to less")
    sampling = {
        "temperature": np.float32(settings.temperature),
        "top_k": np.int32(settings.top_k),
        "top_p": np.float32(settings.top_p),
        "stop": np.int32(stop),
    }
    seed, rows = jax.random.key(settings.seed), batch_rows(len(prompts), batch_size)
    continued: list[list[int]] = []
    for start in range(0, len(prompts), rows):
        part = prompts[start : start + rows]
        width = bucket_length(max(map(len, part)), config.max_length - new)
        prompts_BT, length_B = np.zeros((rows, width), np.int32), np.ones(rows, np.int32)
        for row, ids in enumerate(part):
            prompts_BT[row, : len(ids)], length_B[row] = ids, len(ids)
        keys_B = jax.vmap(jax.random.fold_in, (None, 0))(seed, np.arange(start, start + rows))
        ids_BU, count_B = decoding.generate(
            params, jnp.asarray(prompts_BT), jnp.asarray(length_B), keys_B, sampling,
            config=config, new=new, words=words, greedy=settings.temperature == 0,
        )  # fmt: skip
        of_part = zip(part, np.asarray(ids_BU), np.asarray(count_B), strict=False)  # rows beyond the part are empty
        continued += [ids_U[:count].tolist() for _, ids_U, count in of_part]
    return continued


def continued_texts(
    params: Params,
    config: ModelConfig,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    settings: GenerationSettings,
    *,
    batch_size: int = 32,
) -> list[str]:
    """Each text as it was given, with what the model adds; special tokens are left out of that."""
    before, after = tokenizer.template.before, tokenizer.template.after
    prompts = [[*before, *ids] for ids in tokenizer.encode_ids(list(texts), special_in_text=True)]
    stop = after[-1] if after else -1
    words = min(tokenizer.vocab_size, config.vocab_size)
    new = continued_ids(params, config, prompts, settings, words=words, stop=stop, batch_size=batch_size)
    return [text + _added(tokenizer, ids, more) for text, ids, more in zip(texts, prompts, new, strict=True)]


def _added(tokenizer: Tokenizer, prompt: list[int], new: list[int]) -> str:
    """What the new tokens add to the text of the prompt's."""
    head, whole = (tokenizer.decode(ids, skip_special=True) for ids in (prompt, [*prompt, *new]))
    if whole.startswith(head):
        return whole[len(head) :]
    more = tokenizer.decode(new, skip_special=True)  # the first new token has changed how the prompt is written
    return f" {more}" if more else ""
