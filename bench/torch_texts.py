"""Fine-tuning and inference of a classifier by transformers in PyTorch with dynamic padding, timed in turns.

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
    made = work.work_of(work.parser(__doc__ or "", Texts).parse_args(), Texts)
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    config = transformers.BertConfig.from_dict(made.config.to_json() | {"num_labels": 2, "attn_implementation": "sdpa"})
    model = transformers.BertForSequenceClassification(config)
    step = {"finetune": finetune, "classify": classify}[made.step](model, made)
    versions = {"name": "torch", "torch": torch.__version__, "transformers": transformers.__version__, "device": "cpu"}
    turns.serve(step, lambda: None, versions, turns.resident)


def finetune(model, made: Texts):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    label_N = torch.from_numpy(made.label_N)
    done = 0

    def step() -> None:
        nonlocal done
        chosen = made.chosen(done % made.steps)
        with _precision(made):
            loss = model(**_inputs(made, chosen), labels=label_N[chosen]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        done += 1

    return step


def classify(model, made: Texts):
    model.eval()

    def step() -> np.ndarray:
        with torch.inference_mode(), _precision(made):
            return np.concatenate([model(**_inputs(made, part)).logits.float().numpy() for part in made.parts()])

    return step


def _inputs(made: Texts, chosen: np.ndarray) -> dict:
    return {name: torch.from_numpy(value) for name, value in made.padded(chosen).items()}


def _precision(made: Texts):
    return torch.autocast("cpu", torch.bfloat16) if made.dtype == "bfloat16" else contextlib.nullcontext()


if __name__ == "__main__":
    main()
