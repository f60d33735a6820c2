"""Computes a head's scores of encoded examples, in their order: one row per example, or one per token.

Batches and packing change no score. Axes: N example, B row, T position, E example in a row, C class, K token of all
examples, concatenated.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bert import architectures
from bert.architectures import ModelConfig
from bert.data import encoded_examples
from bert.data.encoded_examples import EncodedExamples, ExampleSettings
from bert.errors import InputError
from bert.model import forward, stack
from bert.progress import progress as show_progress
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import HostBatch


class Devices(NamedTuple):
    """How a batch gets onto devices, and an array back."""

    place: Callable[[HostBatch], Any] = lambda batch: batch
    fetch: Callable[[Any], np.ndarray] = np.asarray


HERE = Devices()  # computes where the parameters are


@dataclasses.dataclass(frozen=True)
class Scorer:
    """A fine-tuned model as prediction and evaluation use it.

    Attributes:
      params: {"encoder": ..., "head": ...}, on the host or on devices.
      labels: names of the classes, in the order of the scores.
      extra: config.json without what describes the encoder: the task's settings.
      source: what messages call the model.
      batch_size: rows computed at a time; a multiple of ``row_unit``.
      packed: whether several short examples share a row; only the time depends on it.
      progress: shows a bar on a terminal, a line every ten seconds elsewhere.
      finite: whether scores that are not finite raise InputError; evaluations of a run log them as undefined.
    """

    params: Any
    config: ModelConfig
    tokenizer: Tokenizer
    labels: tuple[str, ...] = ()
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    source: str = "the model"
    batch_size: int = 32
    packed: bool = True
    row_unit: int = 1
    devices: Devices = HERE
    progress: bool = False
    finite: bool = True

    def of_examples(self, encoded: EncodedExamples, max_length: int) -> np.ndarray:
        """float32 [N, C]: the classifier's scores of each example."""
        classes = self._part("sequence_classifier", "fine-tune it on labelled texts, or load a classifier")
        scores_NC = np.zeros((len(encoded), classes["kernel"].shape[-1]), np.float32)
        for (logits_BEC,), index_BE, _ in self._outputs(encoded, max_length, ("sequence_logits",), "row"):
            real_BE = index_BE >= 0
            scores_NC[index_BE[real_BE]] = logits_BEC[real_BE]
        return self._checked(scores_NC)

    def of_tokens(self, encoded: EncodedExamples, max_length: int) -> np.ndarray:
        """float32 [K, C]: the scores of each token of each example, special tokens included.

        C are the classes of a token classifier; of a span head the two scores of being the start and the end.
        """
        if "span" in self.params["head"]:
            names: tuple[str, ...] = ("start_logits", "end_logits")
            width = 2
        else:
            classes = self._part("token_classifier", "fine-tune it, or load a tagger or an answerer")
            names, width = ("token_logits",), classes["bias"].shape[0]
        scores_KC = np.zeros((len(encoded.token_ids), width), np.float32)
        for outputs, index_BE, batch in self._outputs(encoded, max_length, names, "window"):
            logits_BTC = outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=-1)
            for row, slot in zip(*np.nonzero(index_BE >= 0), strict=True):
                i = index_BE[row, slot]
                first, length = batch["cls_positions"][row, slot], encoded.length_N[i]
                scores_KC[encoded.starts[i] : encoded.starts[i + 1]] = logits_BTC[row, first : first + length]
        return self._checked(scores_KC)

    def _part(self, name: str, way_out: str) -> Any:
        head = self.params["head"]
        if name not in head:
            raise InputError(f"{self.source}: has no {name} head (it holds {', '.join(['encoder', *head])}); {way_out}")
        return head[name]

    def _checked(self, scores: np.ndarray) -> np.ndarray:
        if self.finite and not np.isfinite(scores).all():
            raise InputError(
                f"{self.source}: its scores are not finite; its training diverged or its weights are damaged, so use "
                "another model"
            )
        return scores

    def _outputs(
        self, encoded: EncodedExamples, max_length: int, names: tuple[str, ...], unit: str
    ) -> Iterator[tuple[list[np.ndarray], np.ndarray, HostBatch]]:
        """For each batch the named outputs on the host, int64 [B, E]: which example each slot holds, and the batch.

        ``unit``: what the progress calls an example.
        """
        packed = self.packed and architectures.packs(self.config)
        settings = ExampleSettings(self.batch_size, max_length, packed, row_unit=self.row_unit)
        read = {name: encoded.of_token[name] for name in architectures.inputs_of(self.config)}
        without_targets = dataclasses.replace(encoded, of_example={}, of_token=read)
        params, waiting = stack.by_layer(self.params, self.config), None
        with show_progress(len(encoded), unit, shown=self.progress) as done:
            for batch, index_BE in encoded_examples.prediction_batches(without_targets, settings):
                outputs = forward.outputs(params, self.devices.place(batch), config=self.config, wanted=names)
                if waiting is not None:  # read one late: the device is busy with the next batch meanwhile
                    yield self._fetched(*waiting)
                    done(int((waiting[1] >= 0).sum()))
                waiting = ([outputs[name] for name in names], index_BE, batch)
            if waiting is not None:
                yield self._fetched(*waiting)
                done(int((waiting[1] >= 0).sum()))

    def _fetched(
        self, outputs: list[Any], index_BE: np.ndarray, batch: HostBatch
    ) -> tuple[list[np.ndarray], np.ndarray, HostBatch]:
        return [self.devices.fetch(value) for value in outputs], index_BE, batch


def check_rows(rows: Any) -> None:
    """Refuses a single text or row in the place of a list."""
    if isinstance(rows, str | Mapping):
        raise InputError("rows is one text or one row; give a list of them, [row] for one")


def softmax(logits_KC: np.ndarray) -> np.ndarray:
    """float64 [..., C], computed in double precision."""
    logits_KC = logits_KC.astype(np.float64)
    shares_KC: np.ndarray = np.exp(logits_KC - np.logaddexp.reduce(logits_KC, axis=-1, keepdims=True))
    return shares_KC
