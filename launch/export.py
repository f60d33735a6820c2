"""Writes a model for others: a Hugging Face directory, a StableHLO file that jax alone runs, or an ONNX file.

python -m launch.export --source=DIR --out=DIR --format=huggingface|stablehlo|onnx [--dtype=float32|float16|bfloat16]
"""

import bert
from bert.interop import export
from launch import flags

OPTIONS = {
    "source": "model directory, run directory, or folder or prefix of Google's TensorFlow 1 checkpoint",
    "out": "directory to write; an older one of ours is replaced as a whole",
    "format": f"one of {', '.join(export.FORMATS)} (huggingface where not given)",
    "dtype": f"of the weights in a Hugging Face file: {', '.join(export.DTYPES)} (float32 where not given)",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, doc=__doc__, config_file="", options=OPTIONS, required=("source", "out"))
    format, dtype = options.format or "huggingface", options.dtype or "float32"
    export.check_choices(format, dtype)  # before anything is read
    export.check_replaceable(options.out)
    model = bert.load(options.source)
    print(model.summary(), flush=True)
    folder = bert.save(model, options.out, format=format, dtype=dtype)
    print("wrote", ", ".join(f"{folder / name}" for name in sorted(path.name for path in folder.iterdir())))


if __name__ == "__main__":
    flags.main(run)
