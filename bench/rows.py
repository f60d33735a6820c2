"""Rows of the comparison on a CPU: what is timed, against which implementations, and the target ratios."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple


class Other(NamedTuple):
    """An implementation: its environment (bench/environments.py), its module in bench/, and its own flags."""

    environment: str
    module: str
    flags: tuple[str, ...] = ()


AS_SHIPPED, GATHERED, COMPILED = "torch", "torch, gathered", "torch, gathered, compiled"
SENTENCES = "Sentence-Transformers"
LANGUAGE, LANGUAGE_COMPILED = "torch, language model", "torch, language model, compiled"
BY_LENGTH, PACKED, PACKED_COMPILED = "torch.nn, by length", "torch.nn, packed", "torch.nn, packed, compiled"
BEAMS = "transformers' generate"
FLAX, KERAS, PADDED, ONNX = "transformers' Flax", "Keras Hub", "torch, dynamic padding", "ONNX Runtime, dynamic padding"
OTHERS = {
    AS_SHIPPED: Other("torch", "torch_peer"),
    GATHERED: Other("torch", "torch_peer", ("--gather",)),
    COMPILED: Other("torch", "torch_peer", ("--gather", "--compile")),
    FLAX: Other("flax", "flax_peer"),
    KERAS: Other("keras", "keras_peer"),
    PADDED: Other("torch", "torch_texts"),
    ONNX: Other("torch", "onnx_peer"),
    SENTENCES: Other("torch", "sentences_peer"),
    LANGUAGE: Other("torch", "torch_language"),
    LANGUAGE_COMPILED: Other("torch", "torch_language", ("--compile",)),
    BY_LENGTH: Other("torch", "torch_pairs"),
    PACKED: Other("torch", "torch_pairs", ("--packed",)),
    PACKED_COMPILED: Other("torch", "torch_pairs", ("--packed", "--compile")),
    BEAMS: Other("torch", "torch_beams"),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """One or more lines of the table.

    Attributes:
      module: our module in bench/. flags: flags of every process.
      goals: implementation -> target ratio of its time to ours (None: no target).
      steps: steps in a block.
      keeps_memory: all processes keep freed memory; otherwise each uses its default allocator settings.
      share: target share of the matrix peak (None: not measured).
      start: time the start of a process up to its first step instead; the target in seconds.
    """

    name: str
    module: str
    flags: tuple[str, ...]
    goals: Mapping[str, float | None]
    steps: int = 1
    keeps_memory: bool = False
    share: float | None = None
    start: float | None = None


def _pretrain(name: str, shape: str, goals: Mapping[str, float | None], **more: Any) -> Row:
    size, batch, length = shape.split()
    dtype = "bfloat16" if name.endswith("bf16") else "float32"
    flags = (f"--size={size}", f"--batch={batch}", f"--length={length}", f"--dtype={dtype}")
    return Row(name, "ours", flags, goals, keeps_memory=dtype == "bfloat16", **more)


def _texts(name: str, step: str, shape: str, goals: Mapping[str, float | None], **more: Any) -> Row:
    size, lengths, count, batch = shape.split()
    dtype = "bfloat16" if name.endswith("bf16") else "float32"
    flags = (
        f"--step={step}", f"--size={size}", f"--lengths={lengths}", f"--count={count}", f"--batch={batch}",
        f"--dtype={dtype}",
    )  # fmt: skip
    return Row(name, "ours_texts", flags, goals, keeps_memory=dtype == "bfloat16", **more)


def _language(name: str, goal: float, *flags: str) -> Row:
    return Row(name, "ours_language", flags, {LANGUAGE: goal, LANGUAGE_COMPILED: goal})


# A block of fine-tuning is one epoch, so all blocks use the same examples.
ROWS = {
    row.name: row
    for row in (
        _pretrain("pretrain-mini-f32", "mini 32 128", {AS_SHIPPED: 3.2, GATHERED: 1.3, FLAX: 3.3}),
        _pretrain("pretrain-base-f32", "base 8 128", {AS_SHIPPED: 1.6, GATHERED: 1.3, FLAX: 1.45}, share=0.85),
        _pretrain("pretrain-base512-f32", "base 2 512", {AS_SHIPPED: 1.7, GATHERED: 1.35, FLAX: 1.6}),
        _pretrain("pretrain-mini-bf16", "mini 32 128", {GATHERED: 1.35}),
        _pretrain("pretrain-base-bf16", "base 8 128", {GATHERED: 1.3}, share=0.75),
        _pretrain("pretrain-base512-bf16", "base 2 512", {GATHERED: 1.8}),
        _pretrain("compiled-mini-f32", "mini 32 128", {COMPILED: 1.3}),
        _pretrain("compiled-base-f32", "base 8 128", {COMPILED: 1.3}),
        _pretrain("compiled-base512-f32", "base 2 512", {COMPILED: 1.35}),
        _pretrain("compiled-mini-bf16", "mini 32 128", {COMPILED: 1.35}),
        _pretrain("compiled-base-bf16", "base 8 128", {COMPILED: 1.3}),
        _pretrain("compiled-base512-bf16", "base 2 512", {COMPILED: 1.8}),
        _pretrain("keras-mini-f32", "mini 32 128", {KERAS: None}),
        _texts("finetune-sst2-f32", "finetune", "mini sst2 512 32", {PADDED: 2.6}, steps=16),
        _texts("finetune-mrpc-f32", "finetune", "mini mrpc 256 32", {PADDED: 1.5}, steps=8),
        _texts("finetune-sst2-bf16", "finetune", "mini sst2 512 32", {PADDED: 3.0}, steps=16),
        _texts("finetune-mrpc-bf16", "finetune", "mini mrpc 256 32", {PADDED: 2.1}, steps=8),
        _texts("classify-base-f32", "classify", "base 128 8 8", {ONNX: 1.0, PADDED: None}),
        _texts("classify-mini-f32", "classify", "mini 128 32 32", {ONNX: 1.0, PADDED: None}, steps=5),
        _texts("classify-sst2-f32", "classify", "mini sst2 1024 32", {ONNX: 1.0, PADDED: 2.5}),
        Row("embed-mini-f32", "ours_sentences", ("--size=mini", "--count=10000"), {SENTENCES: 1.5}),
        _language("gru-f32", 1.3, "--model=gru"),
        _language("lstm-f32", 1.3, "--model=lstm"),
        _language("gpt2-mini-f32", 1.3, "--model=gpt2"),
        # The compiled peer did not end within three minutes.
        Row(
            "generate-gpt2-mini-f32",
            "ours_language",
            ("--model=gpt2", "--step=generate", "--batch=8", "--length=32", "--new=96"),
            {LANGUAGE: 2.0},
        ),
        # A block is all batches, so that all have as many words: sorted by length, some have few rows and some many.
        Row(
            "transformer-tiny-f32", "ours_pairs", (), dict.fromkeys((BY_LENGTH, PACKED, PACKED_COMPILED), 1.5), steps=8
        ),
        Row("translate-bert2bert-f32", "ours_beams", (), {BEAMS: 2.0}),
        _pretrain("start-mini-f32", "mini 32 128", {AS_SHIPPED: 1.0}, start=5.0),
        _pretrain("start-base-f32", "base 8 128", {AS_SHIPPED: 1.0}, start=8.0),
    )
}
# About ten minutes on two cores.
DEFAULT = (
    "pretrain-mini-f32", "pretrain-base-f32", "pretrain-mini-bf16", "finetune-sst2-f32", "finetune-mrpc-f32",
    "classify-base-f32", "classify-sst2-f32", "start-mini-f32",
)  # fmt: skip
