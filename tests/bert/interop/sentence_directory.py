"""Writes small directories as sentence_transformers has them, by hand."""

import json
import pathlib
import shutil

import numpy as np
import safetensors.numpy

TINY = pathlib.Path(__file__).resolve().parents[2] / "golden" / "tiny_bert"
WIDTH = 32
WORDS = (TINY / "vocab.txt").read_text().split()[75:116]


def random_texts(count: int) -> list[str]:
    """The same texts each time, of 0 to 19 words."""
    rng = np.random.default_rng(5)
    return [" ".join(rng.choice(WORDS, rng.integers(0, 20))) for _ in range(count)]


def make(
    folder: pathlib.Path,
    pooling: dict | None = None,
    layers: tuple = (),
    *,
    encoder: str = "",
    texts: dict | None = None,
    settings: dict | None = None,
) -> pathlib.Path:
    """A directory with the tiny BERT in ``folder / encoder``.

    Args:
      pooling: of 1_Pooling/config.json. layers: "Normalize", or (config, tensors) of a dense layer.
      texts, settings: of sentence_bert_config.json and config_sentence_transformers.json; None: no such file.
    """
    shutil.copytree(TINY, folder / encoder)
    modules = [("Transformer", encoder), ("Pooling", "1_Pooling")]
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": WIDTH, **(pooling or {})})
    for layer in layers:
        name = layer if isinstance(layer, str) else "Dense"
        place = folder / f"{len(modules)}_{name}"
        modules.append((name, place.name))
        if layer != name:
            write(place / "config.json", layer[0])
            safetensors.numpy.save_file(layer[1], place / "model.safetensors")
    entries = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate(modules)
    ]
    write(folder / "modules.json", entries)
    for name, values in (("sentence_bert_config.json", texts), ("config_sentence_transformers.json", settings)):
        if values is not None:
            write((folder / encoder if texts is values else folder) / name, values)
    return folder


def write(path: pathlib.Path, values) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))


def dense(size: int, out: int, activation: str = "activation.Tanh", *, bias: bool = True, seed: int = 0) -> tuple:
    """A layer for `make`, with random weights."""
    rng = np.random.default_rng(seed)
    tensors = {"linear.weight": rng.normal(size=(out, size)).astype(np.float32)}
    if bias:
        tensors["linear.bias"] = rng.normal(size=out).astype(np.float32)
    values = {"in_features": size, "out_features": out, "bias": bias}
    return values | {"activation_function": f"torch.nn.modules.{activation}"}, tensors
