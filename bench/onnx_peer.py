"""Inference of a classifier by ONNX Runtime with its own fusions for BERT, timed in turns; float32 alone.

python -m bench.onnx_peer --step=classify --size=base --lengths=128 --count=8 --batch=8

The file is transformers' model as torch.onnx exports it. Batches are padded to their longest example.
"""

import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnxruntime
import torch
import transformers
from onnxruntime.transformers import optimizer

from bench import turns, work
from bench.texts import Texts


class Logits(torch.nn.Module):
    """The scores alone, from inputs by position, as torch.onnx wants them."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits


def main() -> None:
    made = work.work_of(work.parser(__doc__ or "", Texts).parse_args(), Texts)
    if made.dtype != "float32":
        sys.exit(f"--dtype={made.dtype}: ONNX Runtime computes in float32 on a CPU")
    transformers.logging.set_verbosity_error()
    # The form of attention that the fusions know.
    config = transformers.BertConfig.from_dict(
        made.config.to_json() | {"num_labels": 2, "attn_implementation": "eager"}
    )
    model = transformers.BertForSequenceClassification(config).eval()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, which is called old: the fusions know its graphs
        session = onnxruntime.InferenceSession(fused(model, made, folder), providers=["CPUExecutionProvider"])

    def step() -> np.ndarray:
        return np.concatenate([session.run(None, made.padded(part))[0] for part in made.parts()])

    versions = {"name": "onnxruntime", "onnxruntime": onnxruntime.__version__, "torch": torch.__version__}
    turns.serve(step, lambda: None, versions | {"device": "cpu"}, turns.resident)


def fused(model, made: Texts, folder: str) -> str:
    """Path of the exported model after ONNX Runtime's fusions."""
    path = str(pathlib.Path(folder) / "model.onnx")
    example = made.padded(made.parts()[0])
    with torch.no_grad():
        torch.onnx.export(
            Logits(model),
            tuple(torch.from_numpy(value) for value in example.values()),
            path,
            input_names=list(example),
            output_names=["logits"],
            dynamic_axes={name: {0: "batch", 1: "length"} for name in example},
            opset_version=17,
            dynamo=False,
        )
    config = made.config
    found = optimizer.optimize_model(
        path, model_type="bert", num_heads=config.num_heads, hidden_size=config.hidden_size, opt_level=1
    )
    found.save_model_to_file(path)
    return path


if __name__ == "__main__":
    main()
