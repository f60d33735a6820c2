"""README.md of a model directory: what the model is, how it was trained, its scores, and code that loads it.

What no weight tells (settings, data, scores) is in config.json under `KEY`, so it goes with the model from export to
export. Nothing is invented: a model of others gets a card of what its files say. A card that a person has changed is
theirs; it is carried along and never replaced.

Source: Hugging Face Hub documentation, "Model Cards" and "Annotated model card".
"""

import hashlib
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bert import architectures
from bert.architectures import ModelConfig
from bert.interop import card_code
from bert.model.sentence_encoder import SentenceEncoder
from bert.tokenizer.tokenizer import Tokenizer

FILE, KEY = "README.md", "card"
_LARGEST = 1 << 22  # bytes of a card that is carried along
_MARK = re.compile(rb"\n<!-- bert-jax wrote this card, sha256 ([0-9a-f]{64}); a changed one is kept -->\s*\Z")
_PROBLEMS = {
    "regression": "predicts a number for texts", "multi_label_classification": "gives texts any number of labels"
}  # fmt: skip


class Use(NamedTuple):
    """What a model is for: as the Hub calls it, and in words."""

    pipeline: str
    words: str


# By what `card_code.task_of` gives; a task that is not here has a card, too.
_USES = {
    "classification": Use("text-classification", "classifies texts"),
    "squad": Use("question-answering", "answers questions on a passage by the start and end of a span"),
    "bio_mrc": Use("token-classification", "marks the answers to a question in a passage with B, I and O"),
    "tagging": Use("token-classification", "tags words"),
    "pictures": Use("image-classification", "classifies pictures"),
    "translation": Use("translation", "translates sentences"),
    "captioning": Use("image-to-text", "writes captions of pictures"),
    "fill_mask": Use("fill-mask", "fills masked words"),
    "generate": Use("text-generation", "continues texts"),
    "": Use("feature-extraction", "turns tokens into vectors"),
}


class Contents(NamedTuple):
    """What a model directory holds, beside its weights."""

    name: str  # of the directory
    config: ModelConfig
    parts: Sequence[str]  # of the head
    parameters: int
    architecture: str | None  # class of transformers
    tokenizer: Tokenizer | None
    labels: Sequence[str]
    extra: Mapping[str, Any]  # further keys of config.json
    sentences: SentenceEncoder | None
    format: str
    dtype: str


def name_of(path: pathlib.Path) -> str:
    """What people call the model in a folder: of ``model/`` in a run, the run's name."""
    path = pathlib.Path(path)
    if path.name != "model" or not path.parent.name:
        return path.name
    run = path.parent
    return f"{run.parent.name}-{run.name}" if re.fullmatch(r"seed-\d+", run.name) and run.parent.name else run.name


def changed(folder: pathlib.Path) -> bytes | None:
    """The card in a folder that we did not write, or that was changed since; None where there is none."""
    path = folder / FILE
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return None
    content = path.read_bytes()
    match = _MARK.search(text := content.replace(b"\r\n", b"\n"))
    return None if match and hashlib.sha256(text[: match.start()]).hexdigest().encode() == match[1] else content


def text(model: Contents) -> str:
    """The card of a model."""
    import yaml  # slow to import, and rarely needed

    task = card_code.task_of(model.parts, model.extra, causal=architectures.is_causal(model.config))
    facts = _mapping(model.extra.get(KEY))
    metadata = yaml.safe_dump(_metadata(model, task, facts), sort_keys=False, allow_unicode=True, width=1000)
    sections = [
        f"---\n{metadata}---\n\n# {escaped(model.name)}",
        *_description(model, task),
        *_training(facts),
        *_scores(_mapping(facts.get("scores"))),
        "## Intended use",
        "*To be written by the author: what the model is for, for whom, and where it fails.*",
        *_loading(model, task),
    ]
    card = "\n\n".join(sections) + "\n"
    digest = hashlib.sha256(card.encode()).hexdigest()
    return f"{card}\n<!-- bert-jax wrote this card, sha256 {digest}; a changed one is kept -->\n"


def escaped(value: Any) -> str:
    """A text as one line of Markdown that shows it as it is, in a table, too."""
    line = "".join(c if c.isprintable() else " " for c in " ".join(str(value).split()))
    line = line.encode("utf-8", "replace").decode()  # unpaired surrogates
    return re.sub(r"([\\`*_\[\]<>#!|~$&])", r"\\\1", line)


def _use(task: str) -> Use:
    return _USES.get(task, Use("other", f"does the task {escaped(task)}"))


def _mapping(value: Any) -> Mapping[str, Any]:
    """config.json may have been edited: what has another form counts as not there."""
    return value if isinstance(value, Mapping) else {}


def _metadata(model: Contents, task: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The YAML at the top, as the Hub reads it."""
    known = {key: facts[key] for key in ("license", "language") if facts.get(key)}
    libraries = {"onnx": "onnx", "stablehlo": "jax"}
    kind = "transformers" if model.architecture else "bert-jax"
    library = "sentence-transformers" if model.sentences else kind
    tags = ["bert", "bert-jax", *([model.format] if model.format in libraries else [])]
    metadata = {
        **known,
        "library_name": libraries.get(model.format, library),
        "pipeline_tag": "sentence-similarity" if model.sentences and not task else _use(task).pipeline,
        "tags": tags,
    }
    scores = _mapping(facts.get("scores"))
    metrics = [
        {"type": name.partition(":")[0], "name": str(row.get("title", name)), "value": row["value"]}
        for name, row in _rows(scores)
    ]
    if metrics:
        data = {"type": "file", "name": str(scores.get("data"))}
        kind_of = {"type": metadata["pipeline_tag"], "name": metadata["pipeline_tag"]}
        results = [{"task": kind_of, "dataset": data, "metrics": metrics}]
        metadata["model-index"] = [{"name": model.name, "results": results}]
    return metadata


def _rows(scores: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """(name, value with interval and baseline) of the scores that are defined."""
    rows = [(name, _mapping(row)) for name, row in _mapping(scores.get("values")).items()]
    return [(name, row) for name, row in rows if isinstance(row.get("value"), int | float)]


def _description(model: Contents, task: str) -> list[str]:
    config, tokenizer = model.config, model.tokenizer
    what = _use(task).words
    if task == "classification":
        what = _PROBLEMS.get(str(model.extra.get("problem_type")), what)
    sizes: dict[str, Any] = {
        "layers": config.num_layers,
        "hidden size": config.hidden_size,
        "attention heads": getattr(config, "num_heads", None),
        "positions": config.max_length,
        "vocabulary": config.vocab_size,
        "parameters": model.parameters,
        "heads": ", ".join(model.parts) or "none",
        "format": f"{model.format}, {model.dtype}",
    }
    if tokenizer:
        sizes["letter case"] = "ignored" if tokenizer.lower_case else "kept"
    if columns := card_code.columns(task, model.extra):
        sizes["columns of text"] = ", ".join(columns)
    if model.labels:
        more = f" and {len(model.labels) - 20:,} more" if len(model.labels) > 20 else ""
        sizes["labels"] = ", ".join(model.labels[:20]) + more
    if model.sentences:
        sizes["vectors of texts"] = model.sentences
    translates = architectures.is_encoder_decoder(config)
    kind = f"model of the kind {escaped(config.model_type)}" if translates else f"{escaped(config.model_type)} encoder"
    first = f"A {kind} that {what}."
    return [first, _table(("", ""), ((name, value) for name, value in sizes.items() if value is not None))]


def _training(facts: Mapping[str, Any]) -> list[str]:
    parts = []
    if base := facts.get("base"):
        parts.append(f"Trained from the weights of {escaped(base)}.")
    if settings := _mapping(facts.get("training")):
        parts.append(_table(("setting", "value"), settings.items()))
    if data := _mapping(facts.get("data")):
        parts.append(_table(("data", ""), data.items()))
    return ["## Training", *parts] if parts else []


def _scores(scores: Mapping[str, Any]) -> list[str]:
    rows = _rows(scores)
    if not rows:
        return []
    baseline = scores.get("baseline")
    with_interval = any("low" in row for _, row in rows)
    header = ["score", "model", *(["95 % interval"] if with_interval else []), *(["baseline"] if baseline else [])]
    lines = []
    for name, row in rows:
        interval = f"{_number(row['low'])} to {_number(row['high'])}" if row.get("low") is not None else ""
        line = [
            row.get("title", name),
            row["value"],
            *([interval] if with_interval else []),
            *([row.get("baseline", "")] * bool(baseline)),
        ]
        lines.append(line)
    notes = [f"On {escaped(scores.get('data'))}."] + ([f"Baseline: {escaped(baseline)}."] if baseline else [])
    return ["## Scores", " ".join(notes), _table(header, lines)]


def _table(header: Sequence[str], rows: Any) -> str:
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" for _ in header) + " |"]
    return "\n".join([*lines, *("| " + " | ".join(escaped(_number(cell)) for cell in row) + " |" for row in rows)])


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or not 0.001 <= abs(value) < 1e6:
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def _loading(model: Contents, task: str) -> list[str]:
    """The code, for the programs that read this format."""
    extra, tokenizer = model.extra, model.tokenizer
    if model.format == "onnx":
        blocks = [("onnxruntime", "python", card_code.onnx(task, extra, tokenizer))]
    elif model.format == "stablehlo":
        blocks = [("JAX", "python", card_code.stablehlo(task, extra, tokenizer))]
    else:
        blocks = [("bert-jax", "python", card_code.library(task, extra, tokenizer))]
        if tokenizer:
            blocks.append(("bert-jax, from a shell", "bash", card_code.commands(task, extra, tokenizer)))
        if tokenizer and model.architecture:
            code = card_code.transformers(task, extra, model.architecture, tokenizer)
            blocks.append(("transformers", "python", code))
        if tokenizer and model.sentences:
            blocks.append(("Sentence-Transformers", "python", card_code.sentence_transformers()))
    shown = [f"With {title}:\n\n```{language}\n{code}```" for title, language, code in blocks if code]
    return ["## Use", "In the folder of this file; elsewhere, write the folder in the place of `.`.", *shown]
