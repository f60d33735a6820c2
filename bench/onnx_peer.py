"""Inference of a classifier by ONNX Runtime with its fusions for BERT; float32 only.

python -m bench.onnx_peer --step=classify --size=base --lengths=128 --count=8 --batch=8

The file is transformers' model, exported by torch.onnx. Batches are padded to their longest example.
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
    """Returns only the logits and takes positional inputs, as torch.onnx requires."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Texts).parse_args(), Texts)
    if workload.dtype != "float32":
        sys.exit(f"--dtype={workload.dtype}: ONNX Runtime computes in float32 on a CPU")
    transformers.logging.set_verbosity_error()
    # The fusions recognise this form of attention.
    config = transformers.BertConfig.from_dict(
        workload.config.to_json() | {"num_labels": 2, "attn_implementation": "eager"}
    )
    model = transformers.BertForSequenceClassification(config).eval()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the old exporter is deprecated, but the fusions recognise its graphs
        session = onnxruntime.InferenceSession(fused(model, workload, folder), providers=["CPUExecutionProvider"])

    def step() -> np.ndarray:
        return np.concatenate([session.run(None, workload.padded(part))[0] for part in workload.parts()])

    versions = {"name": "onnxruntime", "onnxruntime": onnxruntime.__version__, "torch": torch.__version__}
    turns.serve(step, lambda: None, versions | {"device": "cpu"}, turns.resident)


def fused(model, workload: Texts, folder: str) -> str:
    """Path of the exported model with ONNX Runtime's fusions."""
    path = str(pathlib.Path(folder) / "model.onnx")
    example = workload.padded(workload.parts()[0])
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
    config = workload.config
    optimized = optimizer.optimize_model(
        path, model_type="bert", num_heads=config.num_heads, hidden_size=config.hidden_size, opt_level=1
    )
    optimized.save_model_to_file(path)
    return path


if __name__ == "__main__":
    main()
