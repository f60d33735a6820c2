"""Converts a model to a Hugging Face directory, a StableHLO file (runs with JAX and flatbuffers), or an ONNX file.

bert export --source=runs/mine --out=mine-hf --dtype=float16
bert export --source=runs/mine --out=mine-jax --format=stablehlo
bert export --source=runs/mine --out=mine-onnx --format=onnx
"""

import os
import pathlib
import re
from typing import Any

from ml_collections import ConfigDict

import bert
from bert.errors import InputError, printable
from bert.interop import export, model_card
from bert.interop.hugging_face import CONFIG_FILE
from bert.model.sentence_encoder import SentenceEncoder
from bert.progress import waiting
from bert.training import run_directory
from launch import command_line, flags
from launch.options import Options

OPTIONS = {
    "source": "model directory, run directory, or folder or prefix of Google's TensorFlow 1 checkpoint",
    "out": "directory to write; an older export is replaced as a whole, but weights only by weights as precise",
    "format": f"one of {', '.join(export.FORMATS)} (huggingface where not given)",
    "dtype": f"of the weights in a Hugging Face file: {', '.join(export.DTYPES)} (float32 where not given)",
    "pooling": "declares for Sentence-Transformers how texts become vectors: cls, mean, ..., or several with commas",
    "normalize": "yes or no: declares whether these vectors are made one long",
    "license": "for the model card: an identifier of the Hub, such as apache-2.0 or mit",
    "language": "for the model card: language codes with commas between them, such as en,de",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("source", "out"))
    format, dtype = options.format or "huggingface", options.dtype or "float32"
    command_line.show(ConfigDict(), Options(options | {"format": format, "dtype": dtype}))
    export.check_choices(format, dtype)  # before anything is read
    pooling, normalize = options.names("pooling"), options.yes_no_or_unset("normalize")
    if format in export.PROGRAMS and (pooling, normalize) != (None, None):
        raise InputError(f"--pooling and --normalize are for --format=huggingface; a file of {format} ends before them")
    facts = card_options(options)
    check_apart(options.source, options.out, format, dtype)
    export.check_replaceable(options.out, format, dtype)
    with waiting(f"reading {options.source}"):
        model = bert.load(options.source)
    if (pooling, normalize) != (None, None):
        model.sentences = (model.sentences or SentenceEncoder()).changed(pooling, normalize)
    if facts:
        model.extra[model_card.KEY] = {**(model.extra.get(model_card.KEY) or {}), **facts}
    print(model.summary(), flush=True)
    with waiting(f"writing {options.out}"):
        folder = bert.save(model, options.out, format=format, dtype=dtype)
    print(printable(f"wrote {', '.join(sorted(map(str, folder.iterdir())))}"))


def card_options(options: Options) -> dict[str, Any]:
    """License and languages for the card; InputError for what the Hub would refuse."""
    facts: dict[str, Any] = {}
    if options.license:
        if not re.fullmatch(r"[a-z0-9][a-z0-9.+-]*", options.license):
            raise InputError(
                f"--license={options.license}: is no identifier of the Hub; write apache-2.0, mit or other"
            )
        facts["license"] = options.license
    for code in options.names("language") or ():
        if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]+)*", code):
            raise InputError(f"--language={options.language}: {code!r} is no language code; write en, de or such")
        facts.setdefault("language", []).append(code)
    return facts


def check_apart(source: str, out: str, format: str, dtype: str) -> None:
    """Refuses to write into the source or into a run, except a whole model as ``model/`` of a run that is not the
    source."""
    inner, outer = (pathlib.Path(os.path.realpath(path)) for path in (out, source))
    model = outer / run_directory.MODEL
    if _same(inner, outer) or (_same(inner, model) and os.path.isfile(model / CONFIG_FILE)):
        raise InputError(f"--out={out}: is the source {source}; choose another directory")
    run = next((parent for parent in inner.parents if _is_run(parent)), None)
    if run is not None:
        if inner != run / run_directory.MODEL or (format, dtype) != ("huggingface", "float32"):
            raise InputError(
                f"--out={out}: lies in the run directory {run}, where only a float32 model to load can be written, as "
                f"its {run_directory.MODEL}/; choose a directory outside"
            )
    elif outer in inner.parents:
        raise InputError(f"--out={out}: lies in the source {source}; choose a directory outside")


def _is_run(folder: pathlib.Path) -> bool:
    within = (run_directory.CHECKPOINTS, run_directory.MODEL, run_directory.METRICS, run_directory.LOCK)
    return os.path.isfile(folder / run_directory.CONFIG) and any(os.path.exists(folder / name) for name in within)


def _same(one: pathlib.Path, other: pathlib.Path) -> bool:
    """Whether two names are one place, as also on file systems without letter case, and by mounts."""
    return one == other or (os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other))


if __name__ == "__main__":
    flags.main(run)
