"""Scores of a head for encoded examples, in their order: one row an example, or one a token.

Batches and neighbours in a row change no score. Axes: N example, B row, T position, E example in a row, C class,
K token of all examples, one after the other.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from bert import architectures
from bert.architectures import ModelConfig
from bert.data import encoded_examples
from bert.data.encoded_examples import EncodedExamples, ExampleSettings
from bert.model import forward, stack
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import HostBatch


class Devices(NamedTuple):
    """How a batch gets onto devices, and an array back."""

    place: Callable[[HostBatch], Any] = lambda batch: batch
    fetch: Callable[[Any], np.ndarray] = np.asarray


HERE = Devices()


class Reader(Protocol):
    """What a task's prediction needs of a model: `bert.inference.LoadedModel`."""

    config: ModelConfig
    labels: tuple[str, ...]
    extra: dict[str, Any]
    source: str

    @property
    def vocabulary(self) -> Tokenizer: ...

    def token_scores(
        self, encoded: EncodedExamples, *, max_length: int, batch_size: int = 32, packed: bool = True
    ) -> np.ndarray: ...


def of_examples(
    params: Any, config: ModelConfig, encoded: EncodedExamples, settings: ExampleSettings, devices: Devices = HERE
) -> np.ndarray:
    """float32 [N, C]: the classifier's scores of each example.

    Args:
      params: {"encoder": ..., "head": {"pooler", "sequence_classifier"}}, on the host or on devices.
      devices: of a mesh; the default computes where the parameters are.
    """
    scores_NC = np.zeros((len(encoded), params["head"]["sequence_classifier"]["bias"].shape[0]), np.float32)
    for (found_BEC,), index_BE, _ in _outputs(params, config, encoded, settings, devices, ("sequence_logits",)):
        real_BE = index_BE >= 0
        scores_NC[index_BE[real_BE]] = found_BEC[real_BE]
    return scores_NC


def of_tokens(
    params: Any, config: ModelConfig, encoded: EncodedExamples, settings: ExampleSettings, devices: Devices = HERE
) -> np.ndarray:
    """float32 [K, C]: the scores of each token of each example, special tokens included.

    C are the classes of a token classifier; of a span head the two scores of being the start and the end.

    Args:
      params, devices: as in `of_examples`; the head holds "token_classifier" or "span".
    """
    head = params["head"]
    wanted = ("token_logits",) if "token_classifier" in head else ("start_logits", "end_logits")
    width = head["token_classifier"]["bias"].shape[0] if "token_classifier" in head else 2
    scores_KC = np.zeros((len(encoded.token_ids), width), np.float32)
    for found, index_BE, batch in _outputs(params, config, encoded, settings, devices, wanted):
        found_BTC = found[0] if len(found) == 1 else np.stack(found, axis=-1)
        for row, slot in zip(*np.nonzero(index_BE >= 0), strict=True):
            i = index_BE[row, slot]
            first, length = batch["cls_positions"][row, slot], encoded.length_N[i]
            scores_KC[encoded.starts[i] : encoded.starts[i + 1]] = found_BTC[row, first : first + length]
    return scores_KC


def softmax(logits_KC: np.ndarray) -> np.ndarray:
    """float64 [..., C], computed in double precision."""
    logits_KC = logits_KC.astype(np.float64)
    return np.exp(logits_KC - np.logaddexp.reduce(logits_KC, axis=-1, keepdims=True))


def _outputs(
    params: Any,
    config: ModelConfig,
    encoded: EncodedExamples,
    settings: ExampleSettings,
    devices: Devices,
    wanted: tuple[str, ...],
) -> Iterator[tuple[list[np.ndarray], np.ndarray, HostBatch]]:
    """For each batch the wanted outputs on the host, int64 [B, E]: which example each slot holds, and the batch."""
    settings = dataclasses.replace(settings, packed=settings.packed and architectures.packs(config))
    bare = dataclasses.replace(encoded, of_example={}, of_token={})
    params, waiting = stack.by_layer(params, config), None
    for batch, index_BE in encoded_examples.prediction_batches(bare, settings):
        found = forward.outputs(params, devices.place(batch), config=config, wanted=wanted)
        if waiting is not None:  # read one late: the device is busy with the next batch meanwhile
            yield _fetched(devices, *waiting)
        waiting = ([found[name] for name in wanted], index_BE, batch)
    if waiting is not None:
        yield _fetched(devices, *waiting)


def _fetched(devices: Devices, found: list[Any], index_BE: np.ndarray, batch: HostBatch):
    return [devices.fetch(value) for value in found], index_BE, batch
