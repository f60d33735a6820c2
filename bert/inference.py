"""A trained model at work: load any model directory, fill masks, embed texts, look inside, save again.

Everything runs through a few compiled functions whose shapes come from a short list of lengths and row counts, so a
new text compiles nothing once its length bucket has been seen. Float32 products run at full precision on every
device (GPUs and TPUs would round them otherwise).
Axes: B row, T query position, S key position, D hidden width, N head, V vocabulary, L layer, P masked position.
"""

import functools
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from absl import logging

from bert.config import BertConfig
from bert.data import rows
from bert.data.rows import Batch, bucket_length
from bert.errors import InputError
from bert.interop import hugging_face
from bert.interop.hugging_face import ModelDirectory
from bert.interop.weight_names import Params, Report
from bert.model.encoder import Encoder, pick
from bert.model.heads import MaskedWords
from bert.model.layers import Array, Dense, SelfAttention
from bert.text.tokenizer import Encoding, Tokenizer

NEXT_SENTENCE_CLASSES = ("is_next", "random")  # in the order of the released weights


class Attention(NamedTuple):
    """One layer's attention on one text.

    pieces: the T tokens, [CLS] and [SEP] included. scores: float32 [N, T, T], ``q . k / sqrt(H)``, queries first.
    weights: float32 [N, T, T], their softmax over the keys (the last axis).
    """

    pieces: list[str]
    scores: np.ndarray
    weights: np.ndarray


def load(path: str | os.PathLike) -> "LoadedModel":
    """The model in a model directory or in a run directory (its newest export ``model/``, else its newest checkpoint).

    Raises:
      InputError: nothing to load there, or a file in it is broken (see `hugging_face.load_model_directory`).
    """
    folder = pathlib.Path(path)
    if not (folder / hugging_face.WEIGHTS_FILE).is_file():
        if (folder / "model").is_dir():
            folder = folder / "model"
        elif (folder / "checkpoints").is_dir():
            return LoadedModel(_from_checkpoints(folder))
    return LoadedModel(hugging_face.load_model_directory(folder))


def _from_checkpoints(run: pathlib.Path) -> ModelDirectory:
    """A run's newest checkpoint, where no export is finished yet."""
    from bert.training import checkpoint, run_directory  # Orbax is slow to import

    config = BertConfig.from_json(run_directory.read(run)["encoder"], source=str(run / run_directory.CONFIG))
    step, params = checkpoint.newest_params(run / run_directory.CHECKPOINTS)
    logging.info("%s: no finished export yet; weights are those of step %d", run, step)
    return _in_memory(config, params, Tokenizer.load(run), str(run / run_directory.CHECKPOINTS / str(step)))


def from_params(config: BertConfig, params: Params, tokenizer: Tokenizer | None) -> "LoadedModel":
    """A model made of parameters in memory (NumPy arrays), such as those of a run that has just ended."""
    return LoadedModel(_in_memory(config, params, tokenizer, "parameters/in memory"))


def _in_memory(config: BertConfig, params: Params, tokenizer: Tokenizer | None, source: str) -> ModelDirectory:
    return ModelDirectory(config, params, ("encoder", *params["head"]), tokenizer, Report(source), {})


def save(model: "LoadedModel", directory: str | os.PathLike) -> pathlib.Path:
    """Writes the model as a directory that `load` and transformers read; see `hugging_face.save_model_directory`."""
    return hugging_face.save_model_directory(directory, model.config, model.params, model.tokenizer, extra=model.extra)


class LoadedModel:
    """A model with its tokenizer, ready for use; `load` makes it.

    What needs a vocabulary, or a head that the directory lacks, raises `InputError`.
    """

    def __init__(self, found: ModelDirectory):
        self.config: BertConfig = found.config
        self.params: Params = found.params  # float32 NumPy arrays, on the host
        self.parts: tuple[str, ...] = found.parts
        self.report = found.report
        self.extra: dict[str, Any] = found.extra
        self.source = str(pathlib.Path(found.report.source).parent)
        self.tokenizer: Tokenizer | None = found.tokenizer

    def fill_mask(self, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
        """The likeliest tokens for every [MASK] in the text, in order: ``[[(token, probability), ...], ...]``.

        Args:
          text: holds the mask token at least once; "[SEP]" and the other special tokens may be written, too.
          top: tokens for each mask; more than the vocabulary has gives all of them.

        Probabilities are over all rows of the model; rows beyond the vocabulary are never returned.
        """
        if top < 1:
            raise InputError(f"top is {top}; it must be at least 1")
        vocab = self._vocabulary().vocab
        probabilities_PV = _softmax(self._mask_logits(text)[0])[:, : len(vocab)]
        order_PV = np.argsort(-probabilities_PV, axis=-1, kind="stable")[:, :top]
        return [
            [(vocab[i], float(row_V[i])) for i in best] for row_V, best in zip(probabilities_PV, order_PV, strict=True)
        ]

    def fill(self, text: str) -> str:
        """The text with every [MASK] replaced by its likeliest piece of text (no special token); all else untouched.

        A piece that continues a word stands without its ``##``; the blanks are the input's.
        """
        tokenizer = self._vocabulary()
        logits_PV, offsets = self._mask_logits(text)
        allowed = tokenizer.replacement_ids
        best_P = allowed[np.argmax(logits_PV[:, allowed], axis=-1)]
        done, filled = 0, ""
        for (start, end), best in zip(offsets, best_P, strict=True):
            piece = tokenizer.vocab[best]
            filled += text[done:start] + (piece[2:] if tokenizer.continues_word_V[best] else piece)
            done = end
        return filled + text[done:]

    def embed(
        self, texts: Sequence[str], pooling: Literal["mean", "cls", "pooler"] = "mean", *, batch_size: int = 32
    ) -> np.ndarray:
        """float32 [N, D]: one vector a text, in order; neither batch size nor neighbours change it.

        Args:
          texts: any number of texts; one that is too long is cut, and one warning says how many were.
          pooling: "mean" of all tokens ([CLS] and [SEP] included), "cls": the first token's state, "pooler": the
            pooler's output.
          batch_size: rows computed at a time.
        """
        if isinstance(texts, str):
            raise InputError("texts is one text; embed takes a list of texts, [text] for one")
        if pooling not in ("mean", "cls", "pooler"):
            raise InputError(f"pooling is {pooling!r}; it must be one of mean, cls, pooler")
        if batch_size < 1:
            raise InputError(f"batch_size is {batch_size}; it must be at least 1")
        if pooling == "pooler":
            self._need("pooler", "use pooling='mean' or 'cls'")
        ids_N = self._with_special([e.ids for e in self._vocabulary().encode_batch(list(texts))])
        vectors_ND = np.empty((len(ids_N), self.config.hidden_size), np.float32)
        name = {"mean": "mean", "cls": "cls", "pooler": "pooled_output"}[pooling]
        # Every batch is on its way before the first result is asked for.
        pending = [
            (chosen, self._forward(rows.one_example_a_row([ids_N[i] for i in chosen], length, size), (name,))[name])
            for chosen, length, size in rows.plan([len(ids) for ids in ids_N], self._limit, batch_size)
        ]
        for chosen, found_BD in pending:
            vectors_ND[chosen] = np.asarray(found_BD)[: len(chosen)]
        return vectors_ND

    def outputs(
        self,
        token_ids: Any,
        type_ids: Any = None,
        mask: Any = None,
        *,
        look_inside: bool = False,
    ) -> dict[str, np.ndarray]:
        """What the encoder and the heads that are there give for token ids, as float32 arrays.

        Args:
          token_ids: integers [B, T], special tokens included.
          type_ids: integers [B, T], segments; None means all 0.
          mask: [B, T], 1 for tokens, 0 for padding; None means all 1.
          look_inside: also ``hidden_states`` [L + 1, B, T, D] and ``attentions`` [L, B, N, T, S].

        Returns:
          ``sequence_output`` [B, T, D]; where the head is there: ``pooled_output`` [B, D], ``nsp_logits`` [B, 2]
          (is_next, random), ``mlm_logits`` [B, T, V].
        """
        token_ids_BT = rows.whole_numbers(
            token_ids, "token_ids", None, self.config.vocab_size, "rows of the token table"
        )
        shape = token_ids_BT.shape
        type_ids_BT = rows.whole_numbers(
            np.zeros(shape, np.int32) if type_ids is None else type_ids,
            *("type_ids", shape, self.config.type_vocab_size, "segment types"),
        )
        mask_BT = rows.whole_numbers(
            np.ones(shape, np.int32) if mask is None else mask, "mask", shape, 2, "kinds, 0 and 1"
        )
        (B, T), limit = shape, self._limit
        if limit < T:
            raise InputError(f"token_ids has {T} positions in a row, the model {limit}; cut the rows to {limit}")
        arrays = {"token_ids": token_ids_BT, "type_ids": type_ids_BT, "example_ids": mask_BT}
        batch = rows.padded(arrays, bucket_length(T, limit), rows.power_of_two(B))
        inside = ("hidden_states", "attentions") if look_inside else ()
        found = self._forward(batch, (*self._output_names(), *inside))
        return {name: np.asarray(value)[_CUTS[name](B, T)] for name, value in found.items()}

    def attention(self, text: str, layer: int = 0, *, pair: str | None = None) -> Attention:
        """Pieces, scores and weights of one layer (0 = the first) for a text, or for a text and its ``pair``."""
        if not 0 <= layer < self.config.num_layers:
            raise InputError(f"layer is {layer}; the model has layers 0 to {self.config.num_layers - 1}")
        ids, type_ids = self._join(text, pair, special_in_text=True)
        batch = rows.one_example_a_row([ids], bucket_length(len(ids), self._limit), 1, [type_ids])
        scores, weights = _attention(self._on_device, batch, layer, config=self.config)
        T = len(ids)
        pieces = [self._vocabulary().vocab[i] for i in ids]
        return Attention(pieces, np.asarray(scores)[0, :, :T, :T], np.asarray(weights)[0, :, :T, :T])

    def predict_next_sentence(self, first: str, second: str) -> dict[str, float]:
        """Probabilities by name: does ``second`` follow ``first`` ("is_next"), or was it drawn at "random"?"""
        self._need("next_sentence", "pretrain with the next-sentence objective")
        self._need("pooler", "the next-sentence head reads it")
        ids, type_ids = self._join(first, second)
        batch = rows.one_example_a_row([ids], bucket_length(len(ids), self._limit), 1, [type_ids])
        logits_BC = np.asarray(self._forward(batch, ("nsp_logits",))["nsp_logits"])
        return dict(zip(NEXT_SENTENCE_CLASSES, _softmax(logits_BC)[0].tolist(), strict=True))

    @property
    def _limit(self) -> int:
        return self.config.max_position_embeddings

    @functools.cached_property
    def _on_device(self) -> Params:
        return jax.device_put(self.params)

    def _forward(self, batch: Batch, wanted: tuple[str, ...]) -> dict[str, Array]:
        return _forward(self._on_device, batch, config=self.config, wanted=wanted)

    def _output_names(self) -> tuple[str, ...]:
        return (
            "sequence_output",
            *(["pooled_output"] if "pooler" in self.parts else []),
            *(["nsp_logits"] if {"pooler", "next_sentence"} <= set(self.parts) else []),
            *(["mlm_logits"] if "mlm" in self.parts else []),
        )

    def _need(self, part: str, way_out: str) -> None:
        if part not in self.parts:
            raise InputError(f"{self.source}: has no {part} head (it holds {', '.join(self.parts)}); {way_out}")

    def _vocabulary(self) -> Tokenizer:
        if self.tokenizer is None:
            raise InputError(
                f"{self.source}: has no tokenizer.json or vocab.txt, so it cannot read text; use outputs()"
            )
        return self.tokenizer

    def _with_special(self, pieces_N: Sequence[list[int]]) -> list[list[int]]:
        """[CLS] pieces [SEP] for each text, cut to the model's positions with one warning."""
        tokenizer, room = self._vocabulary(), self._limit - 2
        long = sum(len(ids) > room for ids in pieces_N)
        if long:
            logging.warning(
                "%d of %d texts are longer than the model's %d positions and were cut",
                *(long, len(pieces_N), self._limit),
            )
        return [[tokenizer.cls_id, *ids[:room], tokenizer.sep_id] for ids in pieces_N]

    def _join(self, first: str, second: str | None, *, special_in_text: bool = False) -> tuple[list[int], list[int]]:
        """Token ids and segment types of a text or a pair; from a pair that is too long the longer text is cut."""
        tokenizer = self._vocabulary()
        a = tokenizer.encode(first, special_in_text=special_in_text).ids
        if second is None:
            (ids,) = self._with_special([a])
            return ids, [0] * len(ids)
        b = tokenizer.encode(second, special_in_text=special_in_text).ids
        room = self._limit - 3
        if len(a) + len(b) > room:
            logging.warning("1 pair is longer than the model's %d positions and was cut", self._limit)
            keep = min(len(a), max(room - len(b), (room + 1) // 2))
            a, b = a[:keep], b[: room - keep]
        ids = [tokenizer.cls_id, *a, tokenizer.sep_id, *b, tokenizer.sep_id]
        return ids, [0] * (len(a) + 2) + [1] * (len(b) + 1)

    def _mask_logits(self, text: str) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Logits float32 [P, V] of each mask in the text, and each mask's place [start, end) in the text."""
        self._need("mlm", "only a model with a masked-word head can fill masks")
        tokenizer = self._vocabulary()
        mask_token = tokenizer.vocab[tokenizer.mask_id]
        encoding: Encoding = tokenizer.encode(text, special_in_text=True)
        places = [i for i, token in enumerate(encoding.ids) if token == tokenizer.mask_id]
        if not places:
            raise InputError(f"the text has no {mask_token}; write {mask_token} where a word is to be filled in")
        positions_P = [i + 1 for i in places]  # [CLS] comes first
        if positions_P[-1] > self._limit - 2:  # the last position is [SEP]'s
            beyond = next(p for p in positions_P if p > self._limit - 2)
            raise InputError(
                f"{mask_token} beyond the model's positions: mask at {beyond}, limit {self._limit}; "
                "shorten the text before it"
            )
        (ids,) = self._with_special([encoding.ids])
        batch = rows.one_example_a_row([ids], bucket_length(len(ids), self._limit), 1)
        batch["masked_positions"] = np.zeros((1, rows.power_of_two(len(places))), np.int32)
        batch["masked_positions"][0, : len(places)] = positions_P
        logits_BPV = np.asarray(self._forward(batch, ("mlm_logits",))["mlm_logits"])
        return logits_BPV[0, : len(places)], [encoding.offsets[i] for i in places]


def _apply(module: nn.Module, params: Params, *inputs: Any, **options: Any) -> Any:
    return module.apply({"params": params}, *inputs, **options)


@functools.partial(jax.jit, static_argnames=("config", "wanted"))
def _forward(
    params: Params, batch: dict[str, Array], *, config: BertConfig, wanted: tuple[str, ...]
) -> dict[str, Array]:
    """The wanted outputs, float32; what nobody wants is not computed (XLA drops it).

    Logits of masked words are at ``batch["masked_positions"]`` where given, else at every position.
    """
    head: Params = params.get("head", {})
    found: dict[str, Any] = {}
    with jax.default_matmul_precision("highest"):
        if "hidden_states" in wanted:
            states_LBTD, weights_LBNTS = _apply(Encoder(config), params["encoder"], batch, method="states")
            found |= {"hidden_states": states_LBTD, "attentions": weights_LBNTS}
            hidden_BTD = states_LBTD[-1]
        else:
            hidden_BTD = _apply(Encoder(config), params["encoder"], batch)
        real_BT1 = (batch["example_ids"] != 0)[..., None]
        found |= {
            "sequence_output": hidden_BTD,
            "cls": hidden_BTD[:, 0],
            "mean": jnp.where(real_BT1, hidden_BTD, 0.0).sum(1) / jnp.maximum(real_BT1.sum(1), 1),
        }
        if "pooler" in head:
            pooled_BD = jnp.tanh(_apply(Dense(config, config.hidden_size), head["pooler"], hidden_BTD[:, 0]))
            found["pooled_output"] = pooled_BD
            if "next_sentence" in head:
                found["nsp_logits"] = _apply(Dense(config, 2), head["next_sentence"], pooled_BD)
        if "mlm" in head:
            places_BP = batch.get("masked_positions")
            picked_BPD = hidden_BTD if places_BP is None else pick(hidden_BTD, places_BP)
            table_VD = params["encoder"]["embeddings"]["token"]["embedding"]
            found["mlm_logits"] = _apply(MaskedWords(config), head["mlm"], picked_BPD, table_VD)
        return {name: found[name].astype(jnp.float32) for name in wanted}


@functools.partial(jax.jit, static_argnames=("config",))
def _attention(params: Params, batch: dict[str, Array], layer: Array, *, config: BertConfig) -> tuple[Array, Array]:
    """Scores before the softmax and weights after it, float32 [B, N, T, S], of one layer."""
    with jax.default_matmul_precision("highest"):
        inputs_LBTD, weights_LBNTS = _apply(Encoder(config), params["encoder"], batch, method="states")
        own = jax.tree.map(lambda stacked: stacked[layer], params["encoder"]["blocks"]["attention"])
        q_BTNH, k_BSNH, _ = _apply(SelfAttention(config), own, inputs_LBTD[layer], method="heads")
        scores_BNTS = jnp.einsum("BTNH,BSNH->BNTS", q_BTNH, k_BSNH, preferred_element_type=jnp.float32)
        return scores_BNTS * q_BTNH.shape[-1] ** -0.5, weights_LBNTS[layer]


# How the padding that was added to rows and positions is cut off again.
_CUTS: dict[str, Callable[[int, int], Any]] = {
    "sequence_output": lambda B, T: np.s_[:B, :T],
    "mlm_logits": lambda B, T: np.s_[:B, :T],
    "pooled_output": lambda B, T: np.s_[:B],
    "nsp_logits": lambda B, T: np.s_[:B],
    "hidden_states": lambda B, T: np.s_[:, :B, :T],
    "attentions": lambda B, T: np.s_[:, :B, :, :T, :T],
}


def _softmax(logits: np.ndarray) -> np.ndarray:
    """Float64 softmax over the last axis."""
    powers = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
