"""The pretraining step by transformers in PyTorch; the flags are what an expert user would switch on.

python -m bench.torch_peer --size=base --batch=8 --length=128 [--gather] [--compile] [--fused] [--device=cuda]
"""

import contextlib

import torch
import transformers

from bench import turns, work


def main() -> None:
    flags = work.parser(__doc__ or "")
    flags.add_argument("--gather", action="store_true", help="vocabulary at the masked positions only")
    flags.add_argument("--compile", action="store_true", help="torch.compile")
    flags.add_argument("--fused", action="store_true", help="AdamW(fused=True)")
    flags.add_argument("--device", default="cpu")
    options = flags.parse_args()
    workload, device = work.work_of(options), torch.device(options.device)
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    config = transformers.BertConfig.from_dict(workload.config.to_json() | {"attn_implementation": "sdpa"})
    model: torch.nn.Module = transformers.BertForPreTraining(config)
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=options.fused or None)
    arrays = {name: torch.from_numpy(value).to(device) for name, value in workload.arrays().items()}
    loss = _gathered(model, arrays) if options.gather else _as_shipped(model, arrays)
    loss = torch.compile(loss) if options.compile else loss
    half = workload.dtype == "bfloat16"

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16) if half else contextlib.nullcontext():
            value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    cuda = device.type == "cuda"
    if cuda:
        torch.backends.cuda.matmul.allow_tf32 = workload.dtype == "bfloat16"
    name = " ".join(["torch", *(flag for flag in ("gather", "compile", "fused") if getattr(options, flag))])
    card = torch.cuda.get_device_name() if cuda else "cpu"
    versions = {"name": name, "torch": torch.__version__, "transformers": transformers.__version__, "device": card}
    finish = torch.cuda.synchronize if cuda else lambda: None
    turns.serve(step, finish, versions, torch.cuda.max_memory_allocated if cuda else turns.resident)


def _inputs(arrays: dict) -> dict:
    return {
        "input_ids": arrays["token_ids"].long(),
        "token_type_ids": arrays["type_ids"].long(),
        "attention_mask": arrays["example_ids"].long(),
    }


def _as_shipped(model, arrays: dict):
    """The loss as the model's own ``labels`` give it: the vocabulary at every position."""
    inputs, places = _inputs(arrays), arrays["masked_positions"].long()
    labels = torch.full_like(inputs["input_ids"], -100).scatter(1, places, arrays["masked_ids"].long())
    follows = arrays["next_sentence_labels"].long()[:, 0]
    return lambda: model(**inputs, labels=labels, next_sentence_label=follows).loss


def _gathered(model, arrays: dict):
    inputs, places = _inputs(arrays), arrays["masked_positions"].long()
    words, follows = arrays["masked_ids"].long().flatten(), arrays["next_sentence_labels"].long()[:, 0]
    cross_entropy = torch.nn.functional.cross_entropy

    def loss():
        outputs = model.bert(**inputs)
        hidden = outputs.last_hidden_state
        picked = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
        logits, relation = model.cls(picked, outputs.pooler_output)
        return cross_entropy(logits.flatten(0, 1).float(), words) + cross_entropy(relation.float(), follows)

    return loss


if __name__ == "__main__":
    main()
