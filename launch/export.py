"""Writes a model for others: a Hugging Face directory, a StableHLO file (JAX and flatbuffers run it), or an ONNX file.

python -m launch.export --source=DIR --out=DIR --format=huggingface|stablehlo|onnx [--dtype=float32|float16|bfloat16]
"""

import os
import pathlib

from ml_collections import ConfigDict

import bert
from bert.errors import InputError
from bert.interop import export
from launch import flags

OPTIONS = {
    "source": "model directory, run directory, or folder or prefix of Google's TensorFlow 1 checkpoint",
    "out": "directory to write; an older one of ours is replaced as a whole, but weights only by weights as precise",
    "format": f"one of {', '.join(export.FORMATS)} (huggingface where not given)",
    "dtype": f"of the weights in a Hugging Face file: {', '.join(export.DTYPES)} (float32 where not given)",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, doc=__doc__, config_file="", options=OPTIONS, required=("source", "out"))
    format, dtype = options.format or "huggingface", options.dtype or "float32"
    flags.show(ConfigDict(), flags.Options(options | {"format": format, "dtype": dtype}))
    export.check_choices(format, dtype)  # before anything is read
    check_apart(options.source, options.out, format, dtype)
    export.check_replaceable(options.out, format, dtype)
    model = bert.load(options.source)
    print(model.summary(), flush=True)
    folder = bert.save(model, options.out, format=format, dtype=dtype)
    print("wrote", ", ".join(f"{folder / name}" for name in sorted(path.name for path in folder.iterdir())))


def check_apart(source: str, out: str, format: str, dtype: str) -> None:
    """Refuses to put into the source what cannot take its place.

    A run whose ``model/`` held a program could no longer be loaded, though its checkpoints are there.

    Raises:
      InputError: naming both.
    """
    if (format, dtype) == ("huggingface", "float32"):
        return
    inner, outer = (pathlib.Path(os.path.realpath(path)) for path in (out, source))
    if outer in (inner, *inner.parents):
        what = f"weights in {dtype}" if format == "huggingface" else f"a file of the format {format}"
        raise InputError(f"--out={out}: lies in the source {source}, which {what} cannot replace; choose one outside")


if __name__ == "__main__":
    flags.main(run)
