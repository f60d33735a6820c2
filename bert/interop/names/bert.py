"""Tensor names of BERT: Hugging Face's and Google's, side by side.

Source: google-research/bert ``modeling.py``, ``run_classifier.py`` and ``run_squad.py`` for what exists and Google's
names, ``optimization.py`` for what its trainer leaves; transformers ``models/bert`` for the Hugging Face names.
"""

from collections.abc import Sequence

from bert.interop.names.table import NameTable, Weight

Pair = tuple[Weight, Weight]  # one parameter in Hugging Face's files and in Google's


def _pair(path: str, axes: str, hugging_face: str, google: str, *, transposed: Sequence[bool] = (False, False)) -> Pair:
    """``transposed``: in Hugging Face's files, in Google's."""
    return Weight(path, axes, hugging_face, transposed[0]), Weight(path, axes, google, transposed[1])


def _dense(path: str, axes: str, hugging_face: str, google: str) -> tuple[Pair, Pair]:
    return (
        _pair(f"{path}/kernel", axes, f"{hugging_face}.weight", f"{google}/kernel", transposed=(True, False)),
        _pair(f"{path}/bias", axes[1], f"{hugging_face}.bias", f"{google}/bias"),
    )


def _classes(path: str, axes: str, hugging_face: str, google: str) -> tuple[Pair, Pair]:
    """Scores of classes; Google stores the kernel of these, and only of these, [out, in]."""
    return (
        _pair(f"{path}/kernel", axes, f"{hugging_face}.weight", f"{google}output_weights", transposed=(True, True)),
        _pair(f"{path}/bias", axes[1], f"{hugging_face}.bias", f"{google}output_bias"),
    )


def _norm(path: str, hugging_face: str, google: str) -> tuple[Pair, Pair]:
    return (
        _pair(f"{path}/scale", "D", f"{hugging_face}.LayerNorm.weight", f"{google}/LayerNorm/gamma"),
        _pair(f"{path}/bias", "D", f"{hugging_face}.LayerNorm.bias", f"{google}/LayerNorm/beta"),
    )


def _table(ours: str, axes: str, theirs: str) -> Pair:
    path = f"encoder/embeddings/{ours}/embedding"
    return _pair(path, axes, f"bert.embeddings.{theirs}.weight", f"bert/embeddings/{theirs}")


def _layers() -> tuple[Pair, ...]:
    ours, theirs, googles = "encoder/blocks", "bert.encoder.layer.{layer}", "bert/encoder/layer_{layer}"

    def dense(path: str, axes: str, name: str) -> tuple[Pair, Pair]:
        return _dense(f"{ours}/{path}", axes, f"{theirs}.{name.replace('/', '.')}", f"{googles}/{name}")

    return (
        *dense("attention/query", "DD", "attention/self/query"),
        *dense("attention/key", "DD", "attention/self/key"),
        *dense("attention/value", "DD", "attention/self/value"),
        *dense("attention/output", "DD", "attention/output/dense"),
        *_norm(f"{ours}/attention_norm", f"{theirs}.attention.output", f"{googles}/attention/output"),
        *dense("feed_forward/up", "DF", "intermediate/dense"),
        *dense("feed_forward/down", "FD", "output/dense"),
        *_norm(f"{ours}/feed_forward_norm", f"{theirs}.output", f"{googles}/output"),
    )


_PARTS: dict[str, tuple[Pair, ...]] = {
    "encoder": (
        _table("token", "VD", "word_embeddings"),
        _table("position", "PD", "position_embeddings"),
        _table("type", "SD", "token_type_embeddings"),
        *_norm("encoder/embeddings/norm", "bert.embeddings", "bert/embeddings"),
        *_layers(),
    ),
    "pooler": _dense("head/pooler", "DD", "bert.pooler.dense", "bert/pooler/dense"),
    "mlm": (
        *_dense("head/mlm/transform", "DD", "cls.predictions.transform.dense", "cls/predictions/transform/dense"),
        *_norm("head/mlm/norm", "cls.predictions.transform", "cls/predictions/transform"),
        _pair("head/mlm/bias", "V", "cls.predictions.bias", "cls/predictions/output_bias"),
    ),
    "next_sentence": _classes("head/next_sentence", "DR", "cls.seq_relationship", "cls/seq_relationship/"),
    # These two have the same names in files; config.json says which of them a file holds.
    "sequence_classifier": _classes("head/sequence_classifier", "DC", "classifier", ""),
    "token_classifier": _classes("head/token_classifier", "DC", "classifier", ""),
    "span": _classes("head/span", "DR", "qa_outputs", "cls/squad/"),
}
_SIZES = {"V": "vocab_size", "P": "max_position_embeddings", "S": "type_vocab_size"}
_SIZES |= {"D": "hidden_size", "F": "intermediate_size"}
# A tensor with such a name -> the kind of model that has it. Where any head may have the name, "^bert" is in front.
_OTHER_MODELS = {
    r"^bert\..*\b(distance_embedding|relative_\w+|rel_embeddings|pos_(key_|query_|q_)?proj)\b": "relative positions",
    r"^bert\..*\b(rotary\w*|inv_freq)\b": "rotary positions",
    r"^bert\..*\b(attention\.ln|layer\.\d+\.ln|encoder\.ln|\w*layer_norm)\b": "norms before the sublayers",
    r"^bert\..*\b(query|key|value|in)_proj\b": "projections of another kind, as in DeBERTa",
    r"^bert\..*\bcrossattention\b": "cross-attention, as in a decoder",
    r"^bert\..*\b(query|key|value)_global\b": "global attention, as in Longformer",
    r"\b(embeddings_project|embedding_hidden_mapping_in)\b": "two widths, as in ELECTRA and ALBERT",
    r"\b(albert_layer_groups|inner_group_\d+)\b": "shared layers, as in ALBERT",
    r"\bq_lin\b": "layers as in DistilBERT",
    r"\b(Wqkv|gated_layers|key_conv_attn_layer)\b": "layers of another kind",
}

HUGGING_FACE = NameTable(
    parts={part: tuple(weight for weight, _ in pairs) for part, pairs in _PARTS.items()},
    sizes=_SIZES,
    prefix="bert",
    spellings=(
        (r"^(?:(?:module|model|_orig_mod)\.)+", ""),
        # Only inside a LayerNorm: a parameter of another kind may well be called gamma.
        (r"(?<=\bLayerNorm\.)(gamma|scale)$", "weight"),
        (r"(?<=\bLayerNorm\.)beta$", "bias"),
        (r"^(?=(embeddings|encoder|pooler)\.)", "bert."),
    ),
    ignored={r"^bert\.embeddings\.(position_ids|token_type_ids)$": "a buffer; computed here"},
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    architectures=(
        ("BertForSequenceClassification", frozenset({"pooler", "sequence_classifier"})),
        ("BertForTokenClassification", frozenset({"token_classifier"})),
        ("BertForQuestionAnswering", frozenset({"span"})),
        ("BertForPreTraining", frozenset({"mlm", "pooler", "next_sentence"})),
        ("BertForMaskedLM", frozenset({"mlm"})),
        ("BertForNextSentencePrediction", frozenset({"pooler", "next_sentence"})),
        ("BertModel", frozenset()),
    ),
    decoders={"BertForMaskedLM": "BertLMHeadModel"},
    other_models=_OTHER_MODELS,
)
GOOGLE = NameTable(
    parts={part: tuple(weight for _, weight in pairs) for part, pairs in _PARTS.items()},
    sizes=_SIZES,
    prefix="bert",
    ignored={
        r"/(adam_[mv]|Adam(_1)?|AdamWeightDecayOptimizer(_1)?|LAMBOptimizer(_1)?|Momentum|ExponentialMovingAverage)$": (
            "the optimizer's memory"
        ),
        r"^(global_step|beta[12]_power|loss_scale.*|good_steps|training_step.*)$": "the trainer's counter",
    },
    other_models=_OTHER_MODELS,
)
