"""Fine-tuning and inference of a classifier by transformers in PyTorch with dynamic padding.

python -m bench.torch_texts --step=finetune|classify --size=mini --lengths=sst2 --count=1024

Batches are padded to their longest example.
"""

import contextlib

import numpy as np
import torch
import transformers

from bench import turns, work
from bench.texts import Texts


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Texts).parse_args(), Texts)
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    config = transformers.BertConfig.from_dict(
        workload.config.to_json() | {"num_labels": 2, "attn_implementation": "sdpa"}
    )
    model = transformers.BertForSequenceClassification(config)
    step = {"finetune": finetune, "classify": classify}[workload.step](model, workload)
    versions = {"name": "torch", "torch": torch.__version__, "transformers": transformers.__version__, "device": "cpu"}
    turns.serve(step, lambda: None, versions, turns.resident)


def finetune(model, workload: Texts):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    label_N = torch.from_numpy(workload.label_N)
    done = 0

    def step() -> None:
        nonlocal done
        chosen = workload.chosen(done % workload.steps)
        with _precision(workload):
            loss = model(**_inputs(workload, chosen), labels=label_N[chosen]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        done += 1

    return step


def classify(model, workload: Texts):
    model.eval()

    def step() -> np.ndarray:
        with torch.inference_mode(), _precision(workload):
            return np.concatenate(
                [model(**_inputs(workload, part)).logits.float().numpy() for part in workload.parts()]
            )

    return step


def _inputs(workload: Texts, chosen: np.ndarray) -> dict:
    return {name: torch.from_numpy(value) for name, value in workload.padded(chosen).items()}


def _precision(workload: Texts):
    return torch.autocast("cpu", torch.bfloat16) if workload.dtype == "bfloat16" else contextlib.nullcontext()


if __name__ == "__main__":
    main()
