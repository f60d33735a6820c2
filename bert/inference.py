"""Inference with a trained model: load any model directory, fill masks, embed texts, inspect attention, save again.

Everything runs through a few compiled functions (bert/model/forward.py, pooling.py) whose shapes come from a short list
of lengths and row counts, so a new text compiles nothing once its length bucket has been seen.
Axes: B row, T query position, S key position, D hidden width, N head, V vocabulary, L layer, P masked position.
"""

import functools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, overload

import jax
import numpy as np
from jax import Array

from bert import architectures, attention_steps, prediction
from bert.architectures import ModelConfig
from bert.attention_steps import Attention, AttentionSteps
from bert.data.padding import bucket_length, one_example_a_row, padded, power_of_two, whole_numbers
from bert.data.pairs import CLASS_NAMES
from bert.errors import InputError, check_range, printable
from bert.interop import export, names, sources
from bert.interop.load_report import LoadReport
from bert.interop.model_directory import ModelDirectory
from bert.interop.parameters import with_implied_parts
from bert.model import forward, stack
from bert.model.heads import reads_blanks
from bert.model.sentence_encoder import SentenceEncoder
from bert.prediction import captioning, translation
from bert.prediction.captioning import PictureAttention
from bert.prediction.fill_mask import FilledMasks, find_masks, rows_with_masks
from bert.prediction.pseudo_likelihood import log_likelihoods
from bert.prediction.scores import Scorer, check_rows
from bert.prediction.source_attention import SourceAttention
from bert.text_generation import TextGeneration
from bert.tokenizer import sequences
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import HostBatch, Params


def load(path: str | os.PathLike[str]) -> "LoadedModel":
    """The model in a model directory, in a run directory, or in Google's TensorFlow 1 checkpoint; see `sources.read`.

    The model's ``report``, which goes to the log, accounts for every tensor.
    """
    return LoadedModel(sources.read(path))


def from_params(
    config: ModelConfig,
    params: Params,
    tokenizer: Tokenizer | None,
    *,
    labels: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> "LoadedModel":
    """A model made of parameters in memory (NumPy arrays), such as those of a run that has just ended.

    ``labels`` and ``extra``: names of a classifier's classes and a task's settings, as in a model directory.
    """
    params = with_implied_parts(params, names.table(config))
    parts = ("encoder", *params["head"])
    report = LoadReport("parameters/in memory")
    return LoadedModel(ModelDirectory(config, params, parts, tokenizer, report, tuple(labels), dict(extra or {})))


def save(
    model: "LoadedModel", directory: str | os.PathLike[str], *, format: str = "huggingface", dtype: str = "float32"
) -> pathlib.Path:
    """Writes the model as a directory; see `export.save_model_directory`.

    Args:
      format: "huggingface" (`load` and transformers read it), "stablehlo" (JAX and flatbuffers run it, on CPU, CUDA or
        TPU) or "onnx".
      dtype: of the weights in a "huggingface" file: float32, float16 or bfloat16.
    """
    return export.save_model_directory(
        directory,
        model.config,
        model.params,
        model.tokenizer,
        labels=model.labels,
        extra=model.extra,
        sentences=model.sentences,
        card=model.card,
        format=format,
        dtype=dtype,
    )


class LoadedModel(TextGeneration):
    """A model with its tokenizer, made by `load`.

    Methods that need a vocabulary, or a head that the directory lacks, raise `InputError`.
    """

    def __init__(self, directory: ModelDirectory):
        self.config: ModelConfig = directory.config
        self.params: Params = directory.params  # float32 NumPy arrays, on the host
        self.parts: tuple[str, ...] = directory.parts
        self.report = directory.report
        self.labels: tuple[str, ...] = directory.labels  # of a classifier's classes, in the order of its scores
        self.extra: dict[str, Any] = directory.extra
        self.source = str(pathlib.Path(directory.report.source).parent)
        self.tokenizer: Tokenizer | None = directory.tokenizer
        self.card: bytes | None = directory.card  # README.md, where a person wrote or changed it
        self.sentences: SentenceEncoder | None = directory.sentences  # how texts become vectors, where it declares that

    def fill_mask(self, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
        """The ``top`` likeliest tokens for every [MASK] in the text, in order: ``[[(token, probability), ...], ...]``.

        "[SEP]" and the other special tokens may be written in the text, too.
        """
        return self.masks(text).ranked(top)

    def fill(self, text: str) -> str:
        """The text with every [MASK] replaced by its likeliest piece of text; see `FilledMasks.filled`."""
        return self.masks(text).filled()

    def masks(self, text: str) -> FilledMasks:
        """The masks of a text filled by one run of the model: ``.ranked(top)`` and ``.filled()``.

        BERT fills each mask beside the others; a model of blanks each without the others, as if no word stood there.
        """
        self.need("mlm", "only a model with a masked-word head can fill masks")
        self.refuse_causal("it fills no masks: use generate")
        tokenizer = self.vocabulary
        encoding = tokenizer.encode(text, special_in_text=True)
        places = find_masks(encoding, tokenizer, self._limit)
        (ids,) = sequences.singles([encoding.ids], tokenizer, self._limit)
        # [CLS] comes first.
        rows, places_BP = rows_with_masks(ids, [i + 1 for i in places], alone=reads_blanks(self.config))
        batch = one_example_a_row(rows, bucket_length(len(ids), self._limit), len(places_BP))
        batch["masked_positions"] = places_BP
        logits_BPV = np.asarray(self._forward(batch, ("mlm_logits",))["mlm_logits"])
        logits_PV = logits_BPV.reshape(-1, logits_BPV.shape[-1])[: len(places)]
        offsets = [encoding.offsets[i] for i in places]
        return FilledMasks(text, offsets, logits_PV, tokenizer)

    def outputs(
        self, token_ids: Any, type_ids: Any = None, mask: Any = None, *, look_inside: bool = False
    ) -> dict[str, np.ndarray]:
        """What the encoder and the heads that are there give for token ids, as float32 arrays.

        Args:
          token_ids: integers [B, T], special tokens included.
          type_ids: integers [B, T], segments; None means all 0.
          mask: [B, T], 1 for tokens, 0 for padding; None means all 1.
          look_inside: also ``hidden_states`` [L + 1, B, T, D] and ``attentions`` [L, B, N, T, S].

        Returns:
          ``sequence_output`` [B, T, D]; where the head is there: ``pooled_output`` [B, D], ``nsp_logits`` [B, 2]
          (classes in the order of `predict_next_sentence`), ``mlm_logits`` [B, T, V], ``sequence_logits`` [B, C] and
          ``token_logits`` [B, T, C] (classes in the order of ``labels``), ``start_logits`` and ``end_logits`` [B, T].
        """
        token_ids_BT = whole_numbers(token_ids, "token_ids", None, self.config.vocab_size, "rows of the token table")
        shape = token_ids_BT.shape
        type_ids = np.zeros(shape, np.int32) if type_ids is None else type_ids
        type_ids_BT = whole_numbers(type_ids, "type_ids", shape, self.config.type_vocab_size, "segment types")
        mask = np.ones(shape, np.int32) if mask is None else mask
        mask_BT = whole_numbers(mask, "mask", shape, 2, "kinds, 0 and 1")
        (B, T), limit = shape, self._limit
        if limit < T:
            raise InputError(f"token_ids has {T} positions in a row, the model {limit}; cut the rows to {limit}")
        arrays = {"token_ids": token_ids_BT, "type_ids": type_ids_BT, "example_ids": mask_BT}
        batch = padded(arrays, bucket_length(T, limit), power_of_two(B))
        inside = ("hidden_states", "attentions") if look_inside else ()
        wanted = ("sequence_output", *forward.head_outputs(self.parts), *inside)
        return {name: forward.without_padding(name, v, B, T) for name, v in self._forward(batch, wanted).items()}

    @overload
    def attention(self, text: str, layer: int = ..., *, pair: str | None = ...) -> Attention: ...
    @overload
    def attention(self, text: str, *, target: str | None) -> SourceAttention: ...
    @overload
    def attention(self, text: np.ndarray, *, target: str | None = ...) -> PictureAttention: ...
    def attention(
        self, text: Any, layer: int | None = None, *, pair: str | None = None, target: str | None = None
    ) -> Attention | SourceAttention | PictureAttention:
        """Pieces, scores and weights of one layer (from 0, the default) for a text, or for a text and its ``pair``.

        Of an encoder-decoder, how it reads the text to write ``target`` (None: its own translation), in all layers; of
        one that reads pictures, how it reads this one, an array [X, Y, C].
        """
        if translation.translates(self.config) or captioning.writes_captions(self.config):
            if layer is not None or pair is not None:
                raise InputError(
                    f"{self.source}: shows all its layers, and reads one source; give text and target alone"
                )
            reads_pictures = captioning.writes_captions(self.config)
            return self.picture_attention(text, target) if reads_pictures else self.source_attention(text, target)
        if target is not None:
            raise InputError(f"{self.source}: has no decoder that writes a target; give the second text as pair")
        layer = layer or 0
        if layer not in range(self.config.num_layers):
            raise InputError(f"layer is {layer}; the model has layers 0 to {self.config.num_layers - 1}")
        ids, type_ids = self.join(text, pair, special_in_text=True)
        batch = one_example_a_row([ids], bucket_length(len(ids), self._limit), 1, [type_ids])
        scores, weights = forward.attention(self.on_device, batch, layer, config=self.config)
        T = len(ids)
        pieces = [self.vocabulary.vocab[i] for i in ids]
        return Attention(pieces, np.asarray(scores)[0, :, :T, :T], np.asarray(weights)[0, :, :T, :T])

    def attention_steps(self, text: str, layer: int = 0, head: int = 0, *, pair: str | None = None) -> AttentionSteps:
        """Each step of one head (0 = the first) for a text or a pair, and the vectors up to the next block."""
        ids, type_ids = self.join(text, pair, special_in_text=True)
        pieces = [self.vocabulary.vocab[i] for i in ids]
        return attention_steps.of_head(self.on_device, self.config, ids, type_ids, pieces, layer, head)

    def predict_next_sentence(self, first: str, second: str) -> dict[str, float]:
        """Probabilities by name: does ``second`` follow ``first`` ("is_next"), or was it drawn at "random"?

        A model that was trained here with sentence order answers whether the two are "in_order" or "swapped".
        """
        self.need("next_sentence", "pretrain with the next-sentence objective")
        self.need("pooler", "the next-sentence head reads it")
        if second is None:  # which `join` would take for a single text
            raise InputError("second is None, which is no text; the head compares two texts")
        ids, type_ids = self.join(first, second)
        batch = one_example_a_row([ids], bucket_length(len(ids), self._limit), 1, [type_ids])
        logits_C = np.asarray(self._forward(batch, ("nsp_logits",))["nsp_logits"])[0].astype(np.float64)
        shares_C = np.exp(logits_C - np.logaddexp.reduce(logits_C))
        return dict(zip(self._class_names(), shares_C.tolist(), strict=True))

    def pseudo_log_likelihoods(self, texts: Sequence[str], *, batch_size: int = 32) -> np.ndarray:
        """float64 [N]: the sum of log p over the tokens of each text, in nats, each masked in turn; see
        `pseudo_likelihood`."""
        self.need("mlm", "only a model with a masked-word head has them")
        self.refuse_causal("score texts with it by `bert score`, without per_sentence")
        check_rows(texts)
        return log_likelihoods(self.scorer(batch_size=batch_size), self.vocabulary.encode_ids(list(texts)))

    def predict(
        self,
        rows: Sequence[Any],
        *,
        batch_size: int = 32,
        packed: bool = True,
        details: bool = False,
        measure: str = "",
        progress: bool = False,
    ) -> list[dict[str, Any]]:
        """The prediction for each row, in order, by the task that the model was trained on.

        See ``answers`` in bert/prediction/classification.py, bio_mrc.py, squad.py and tagging.py.

        Args:
          rows: mappings with the columns that the model was trained on (others are ignored), or texts, or pairs;
            of a tagger also lists of words; of a model that reads pictures an array [N, rows, columns(, channels)].
          batch_size: rows of tokens computed at a time.
          packed: several short examples in a row of tokens; only the time depends on it.
          details: also the probabilities of each token, or the other candidates.
          measure: also the uncertainty, under this name: entropy, margin or disagreement (prediction/uncertainty.py).
          progress: shows a bar on a terminal, a line every ten seconds elsewhere.
        """
        scorer = self.scorer(batch_size=batch_size, packed=packed, progress=progress)
        module = prediction.module_of(self.task)
        predictions: list[dict[str, Any]] = module.predict(scorer, rows, details=details, measure=measure)
        return predictions

    def scorer(self, *, batch_size: int = 32, packed: bool = True, progress: bool = False) -> Scorer:
        """The model as functions of bert/prediction take it."""
        check_range("batch_size", batch_size, at_least=1, whole=True)
        tokenizer: Any = self.vocabulary if architectures.has_tokenizer(self.config) else None
        of_model = (self.on_device, self.config, tokenizer, self.labels, self.extra, self.source)
        return Scorer(*of_model, batch_size, packed, progress=progress)

    @property
    def task(self) -> str:
        """The task that the head was trained for, of `prediction.TASKS`; of others' models by the part of the head."""
        for task in prediction.TASKS:
            if task in self.extra:
                return task
        for task, part in prediction.TASKS.items():
            if part in self.parts:
                return task
        if translation.translates(self.config):  # others' encoder-decoders
            return translation.KEY
        raise InputError(
            f"{self.source}: has no head of a task (it holds {', '.join(self.parts)}); fine-tune it, or load a "
            "classifier, a tagger or an answerer"
        )

    def summary(self) -> str:
        """One line on what was loaded: where from, sizes, heads, vocabulary and letter case."""
        config, tokenizer = self.config, self.tokenizer
        sizes = f"{config.num_layers} layers of width {config.hidden_size}, {config.max_length} positions"
        vocabulary = "none"
        if tokenizer is not None:
            vocabulary = f"{tokenizer.vocab_size:,} entries, lower-case: {'yes' if tokenizer.lower_case else 'no'}"
        vectors = f"; vectors of texts: {self.sentences}" if self.sentences else ""
        return f"{printable(self.source)}: {sizes}; parts: {', '.join(self.parts)}; vocabulary: {vocabulary}{vectors}"

    def __repr__(self) -> str:
        return f"<LoadedModel {self.summary()}>"

    @property
    def _limit(self) -> int:
        return self.config.max_length

    @functools.cached_property
    def on_device(self) -> Params:
        params: Params = jax.device_put(stack.by_layer(self.params, self.config))
        return params

    def _forward(self, batch: HostBatch, wanted: tuple[str, ...]) -> dict[str, Array]:
        return forward.outputs(self.on_device, batch, config=self.config, wanted=wanted)

    def need(self, part: str, way_out: str) -> None:
        if part not in self.parts:
            raise InputError(f"{self.source}: has no {part} head (it holds {', '.join(self.parts)}); {way_out}")

    @property
    def vocabulary(self) -> Tokenizer:
        """The tokenizer, where there is one; `InputError` else."""
        if self.tokenizer is None:
            raise InputError(f"{self.source}: has no tokenizer.json or vocab.txt and cannot read text; use outputs()")
        return self.tokenizer

    def join(self, first: str, second: str | None, *, special_in_text: bool = False) -> tuple[list[int], list[int]]:
        """Token ids and segment types of a text or a pair."""
        tokenizer = self.vocabulary
        a = tokenizer.encode(first, special_in_text=special_in_text).ids
        if second is None:
            (ids,) = sequences.singles([a], tokenizer, self._limit)
            return ids, [0] * len(ids)
        return sequences.pair(a, tokenizer.encode(second, special_in_text=special_in_text).ids, tokenizer, self._limit)

    def _class_names(self) -> tuple[str, str]:
        """Of the next-sentence head, in the order of its logits; what others trained is next sentence."""
        pretraining = self.extra.get("pretraining")
        objective = pretraining.get("objective") if isinstance(pretraining, dict) else "nsp"
        return CLASS_NAMES.get(str(objective), CLASS_NAMES["nsp"])
