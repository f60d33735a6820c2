"""Tensor names of GPT and GPT-2 in Hugging Face's files. Kernels of Conv1D are [in, out], as ours.

Source: transformers ``models/openai`` and ``models/gpt2``.
"""

from bert.interop.names.table import NameTable, Weight, merged

_BLOCKS = "encoder/blocks"


def _dense(path: str, axes: str, name: str, *, transposed: bool = False) -> tuple[Weight, Weight]:
    return Weight(f"{path}/kernel", axes, f"{name}.weight", transposed), Weight(f"{path}/bias", axes[1], f"{name}.bias")


def _norm(path: str, name: str) -> tuple[Weight, Weight]:
    return Weight(f"{path}/scale", "D", f"{name}.weight"), Weight(f"{path}/bias", "D", f"{name}.bias")


def _layers(prefix: str) -> tuple[Weight, ...]:
    layer, attention = f"{prefix}.h.{{layer}}", f"{_BLOCKS}/attention"
    packed = [f"{attention}/{name}" for name in ("query", "key", "value")]
    return (
        *merged(f"{layer}.attn.c_attn.weight", [f"{path}/kernel" for path in packed], ("DD",) * 3),
        *merged(f"{layer}.attn.c_attn.bias", [f"{path}/bias" for path in packed], ("D",) * 3),
        *_dense(f"{attention}/output", "DD", f"{layer}.attn.c_proj"),
        *_norm(f"{_BLOCKS}/attention_norm", f"{layer}.ln_1"),
        *_dense(f"{_BLOCKS}/feed_forward/up", "DF", f"{layer}.mlp.c_fc"),
        *_dense(f"{_BLOCKS}/feed_forward/down", "FD", f"{layer}.mlp.c_proj"),
        *_norm(f"{_BLOCKS}/feed_forward_norm", f"{layer}.ln_2"),
    )


def _table(tokens: str, positions: str, family: str, final_norm: str = "") -> NameTable:
    prefix = "transformer"
    encoder = (
        Weight("encoder/embeddings/token/embedding", "VD", f"{prefix}.{tokens}.weight"),
        Weight("encoder/embeddings/position/embedding", "PD", f"{prefix}.{positions}.weight"),
        *_layers(prefix),
        *(_norm("encoder/output_norm", f"{prefix}.{final_norm}") if final_norm else ()),
    )
    return NameTable(
        parts={
            "encoder": encoder,
            "mlm": (),  # the token table
            "sequence_classifier": (Weight("head/sequence_classifier/kernel", "DC", "score.weight", True),),
            "token_classifier": _dense("head/token_classifier", "DC", "classifier", transposed=True),
            "span": _dense("head/span", "DR", "qa_outputs", transposed=True),
        },
        sizes={"V": "vocab_size", "P": "max_position_embeddings", "D": "hidden_size", "F": "intermediate_size"},
        needs={},
        prefix=prefix,
        spellings=(
            (r"^(?:(?:module|model|_orig_mod)\.)+", ""),
            (rf"^(?=(h|{tokens}|{positions}|{final_norm or 'ln_f'})\.)", f"{prefix}."),
        ),
        ignored={rf"^{prefix}\.h\.\d+\.attn\.(bias|masked_bias)$": "a buffer; the mask is computed here"},
        copies={"lm_head.weight": f"{prefix}.{tokens}.weight"},
        architectures=(
            (f"{family}ForSequenceClassification", frozenset({"sequence_classifier"})),
            (f"{family}ForTokenClassification", frozenset({"token_classifier"})),
            (f"{family}ForQuestionAnswering", frozenset({"span"})),
            (f"{family}LMHeadModel", frozenset({"mlm"})),
        ),
    )


OPENAI_GPT = _table("tokens_embed", "positions_embed", "OpenAIGPT")
GPT2 = _table("wte", "wpe", "GPT2", "ln_f")
