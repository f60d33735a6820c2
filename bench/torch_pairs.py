"""The training step of a Transformer that translates with torch.nn.Transformer.

python -m bench.torch_pairs [--packed] [--compile] [--count=1024]

Axes: as in pairs.py.
"""

import itertools
import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from bench import turns, work
from bench.pairs import START, Pairs

IGNORED = -100


def main() -> None:
    flags = work.parser(__doc__ or "", Pairs)
    flags.add_argument(
        "--packed", action="store_true", help="several pairs in a row; else sorted by length, and padded"
    )
    flags.add_argument("--compile", action="store_true", help="torch.compile")
    options = flags.parse_args()
    workload = work.work_of(options, Pairs)
    torch.manual_seed(0)
    model = Translator(workload.config)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, (0.9, 0.98), 1e-9, fused=True)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.998))
    loss = torch.compile(model, dynamic=not options.packed) if options.compile else model
    batches = workload.packed() if options.packed else workload.by_length()
    inputs = itertools.cycle([inputs_of(batch, options.packed, workload.config.num_heads) for batch in batches])

    def step() -> None:
        loss(*next(inputs), workload.smoothing).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.update_parameters(model)

    versions = {"name": "torch", "torch": torch.__version__, "device": "cpu"}
    turns.serve(step, lambda: None, versions, turns.resident)


class Translator(nn.Module):
    """What `configs/translation.py:transformer-tiny` trains: blocks of torch.nn.Transformer, one token table.

    As there, no norm follows the last block, and dropout is that of embeddings and sublayers alone.
    """

    def __init__(self, config):
        super().__init__()
        width, self.rate = config.hidden_size, config.hidden_dropout
        sizes = (width, config.num_heads, config.intermediate_size, self.rate)
        encoder, decoder = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
        self.transformer = nn.Transformer(
            width,
            config.num_heads,
            batch_first=True,
            custom_encoder=nn.TransformerEncoder(encoder(*sizes, batch_first=True), config.num_layers),
            custom_decoder=nn.TransformerDecoder(decoder(*sizes, batch_first=True), config.num_layers),
        )
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, (encoder, decoder)):
                module.dropout = nn.Identity()
        self.embedding = nn.Embedding(config.vocab_size, width)
        nn.init.normal_(self.embedding.weight, std=config.initializer_range)
        self.dropout = nn.Dropout(self.rate)
        angles = torch.arange(config.max_length)[:, None] * 10_000 ** (-torch.arange(0, width, 2) / width)
        self.register_buffer("sinusoids", torch.stack([angles.sin(), angles.cos()], -1).reshape(len(angles), width))

    def forward(self, source, target, labels, masks, smoothing):
        """The mean loss of the labels; ``source`` and ``target`` are ids and positions."""
        hidden = self.transformer(self.embedded(*source), self.embedded(*target), **masks)
        logits = linear(hidden.flatten(0, 1), self.embedding.weight)
        return cross_entropy(logits, labels.flatten(), ignore_index=IGNORED, label_smoothing=smoothing)

    def embedded(self, ids, positions):
        scaled = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.sinusoids[positions])


def inputs_of(batch, packed: bool, heads: int):
    """What the model reads of a batch (keys: bert/data/batches.py)."""
    arrays = {name: torch.from_numpy(x).long() for name, x in batch.items() if x.dtype.kind == "i"}
    words, positions, of_target = (arrays[f"target_{name}"] for name in ("ids", "position_ids", "example_ids"))
    before = torch.where(positions == 0, START, words.roll(1, 1))
    labels = torch.where(of_target > 0, words, IGNORED)
    later = torch.ones(2 * words.shape[1:], dtype=torch.bool).triu(1)
    if packed:
        # Padding reads padding.
        mask = lambda queries, keys: (queries[:, :, None] != keys[:, None]).repeat_interleave(heads, 0)  # noqa: E731
        of_source = arrays["example_ids"]
        masks = {"src_mask": mask(of_source, of_source), "tgt_mask": mask(of_target, of_target) | later}
        masks |= {"memory_mask": mask(of_target, of_source)}
    else:
        padding = arrays["example_ids"] == 0
        masks = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding, "tgt_mask": later}
    return (arrays["token_ids"], arrays["position_ids"]), (before, positions), labels, masks


if __name__ == "__main__":
    main()
