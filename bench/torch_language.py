"""The training step of a language model in PyTorch: its recurrent layers, or GPT-2 by transformers; and its generation.

python -m bench.torch_language --model=gpt2|gru|lstm [--step=generate --new=64] [--compile]
"""

import contextlib

import torch
import transformers
from torch import nn
from torch.nn.functional import cross_entropy, linear, pad

from bench import turns, work
from bench.language import Language


def main() -> None:
    flags = work.parser(__doc__ or "", Language)
    flags.add_argument("--compile", action="store_true", help="torch.compile")
    options = flags.parse_args()
    workload = work.work_of(options, Language)
    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    model = _gpt2(workload) if workload.model == "gpt2" else Blanks(workload.recurrent)
    make = {"train": _training, "generate": _generation}[workload.step]
    name = "torch, compiled" if options.compile else "torch"
    versions = {"name": name, "torch": torch.__version__, "transformers": transformers.__version__, "device": "cpu"}
    turns.serve(make(model, workload, options.compile), lambda: None, versions, turns.resident)


def _gpt2(workload: Language):
    config = workload.gpt.to_json() | {"attn_implementation": "sdpa", "bos_token_id": None, "eos_token_id": None}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config.from_dict(config))


class Blanks(nn.Module):
    """Each word predicted from the state on its left and the state on its right; the loss of all words."""

    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_size)
        layer = {"gru": nn.GRU, "lstm": nn.LSTM}[config.cell]
        self.recurrent = layer(config.embedding_size, config.state_size, batch_first=True, bidirectional=True)
        self.mix = nn.Linear(config.hidden_size, config.embedding_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, ids):
        hidden, _ = self.recurrent(self.dropout(self.embedding(ids)))
        left, right = self.dropout(hidden).chunk(2, dim=-1)
        beside = torch.cat([pad(left[:, :-1], (0, 0, 1, 0)), pad(right[:, 1:], (0, 0, 0, 1))], dim=-1)
        logits = linear(self.mix(beside), self.embedding.weight, self.bias)
        return cross_entropy(logits.flatten(0, 1).float(), ids.flatten())


def _training(model, workload: Language, compiled: bool):
    ids = torch.from_numpy(workload.token_ids()).long()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    loss = (lambda: model(ids)) if isinstance(model, Blanks) else (lambda: model(input_ids=ids, labels=ids).loss)
    loss = torch.compile(loss) if compiled else loss

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16) if workload.dtype == "bfloat16" else contextlib.nullcontext():
            value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def _generation(model, workload: Language, compiled: bool):
    ids = torch.from_numpy(workload.token_ids()).long()
    model.eval()
    settings: dict = dict(min_new_tokens=workload.new, max_new_tokens=workload.new, do_sample=False, pad_token_id=0)
    if compiled:
        model.forward = torch.compile(model.forward)
        settings |= dict(cache_implementation="static")

    def step() -> None:
        with torch.inference_mode():
            continued = model.generate(ids, attention_mask=torch.ones_like(ids), **settings)
        if continued.shape[1] != workload.length + workload.new:
            raise RuntimeError(f"{continued.shape[1] - workload.length} tokens were generated, not {workload.new}")

    return step


if __name__ == "__main__":
    main()
