"""Sentences that a small BERT-to-BERT model translates by beam search, and the model directory that both sides load.

Every implementation imports this in its own environment, so it needs only NumPy; our process, which starts first, also
writes the model. Its weights are random, and it never ends a text, so each has as many words.
"""

import dataclasses
import json
import pathlib

import numpy as np

from bench.pairs import END, ENTRIES, FIRST_WORD, START, Pairs
from bert.architectures.bert2bert import BertToBertConfig

MODEL, WRITTEN = pathlib.Path(".bench/beams/model"), pathlib.Path(".bench/beams/written.json")


@dataclasses.dataclass(frozen=True)
class Beams:
    """A pass over ``count`` sentences, ``batch`` at a time: each gets ``new`` words by a search of ``beams``."""

    count: int = 256
    batch: int = 32
    beams: int = 5
    new: int = 16

    @property
    def config(self) -> BertToBertConfig:
        # Weights of 0.02 would make almost all words equally probable.
        return BertToBertConfig(ENTRIES, 128, 4, 4, 512, initializer_range=0.1, start_id=START, end_id=END)

    @property
    def sources(self) -> list[list[int]]:
        """The tokens of each sentence, 4 to 51."""
        return Pairs(self.count).tokens[0]

    def write(self) -> None:
        from bert.interop import export, warm_start
        from bert.tokenizer.wordpiece import WordPiece

        tokenizer = WordPiece.from_vocab(
            ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *map(word, range(FIRST_WORD, ENTRIES))]
        )
        params = warm_start.drawn(self.config, seed=0)
        params["decoder"]["words"]["bias"] = np.where(np.arange(ENTRIES) == END, -1e4, 0.0).astype(np.float32)
        export.save_model_directory(MODEL, self.config, {"encoder": params, "head": {}}, tokenizer)

    def check(self, translations: list[str]) -> float:
        """The share of the translations that are equal to ours. Raises RuntimeError where it is below 0.99."""
        ours = json.loads(WRITTEN.read_text())
        share = sum(map(str.__eq__, translations, ours)) / self.count
        if share < 0.99:
            raise RuntimeError(f"only {share:.1%} of the translations are equal")
        return share


def word(token: int) -> str:
    return f"w{token}"
