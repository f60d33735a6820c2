"""A model whose scores are looked up by token id, so that a test knows what is predicted; nothing is compiled."""

import dataclasses
import pathlib

import numpy as np

import bert
from bert.inference import LoadedModel
from bert.prediction.scores import Scorer

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"


class TableModel(LoadedModel):
    """Each token has the scores of its id, whatever stands around it.

    Args:
      like: a LoadedModel whose vocabulary, sizes and parts it has.
      scores: token -> its scores; tokens that are not named have those of ``other``.
    """

    def __init__(self, like, scores, other, *, labels=(), extra=None):
        self.config, self.params, self.parts, self.report = like.config, {}, like.parts, like.report
        self.labels, self.extra, self.source, self.tokenizer = (
            tuple(labels),
            dict(extra or {}),
            "tables",
            like.tokenizer,
        )
        self.table_VC = np.tile(np.array(other, np.float32), (like.vocabulary.vocab_size, 1))
        for token, given in scores.items():
            self.table_VC[like.vocabulary.vocab.index(token)] = given

    def scorer(self, *, batch_size=32, packed=True, progress=False):
        given = (self.labels, self.extra, self.source, batch_size, packed)
        return TableScorer(self.table_VC, self.config, self.vocabulary, *given)


class TableScorer(Scorer):
    """``params`` is the table."""

    def of_tokens(self, encoded, max_length):
        assert encoded.length_N.max(initial=0) <= max_length
        return self.params[encoded.token_ids]


def tagger(labels, tags, other="O", *, tokenizer=None, extra=None, sure=0.9) -> TableModel:
    """A tagger that gives each token in ``tags`` its label, and the others ``other``, with probability ``sure``."""
    like = bert.load(GOLDEN / "tiny_tokcls")
    like.tokenizer = tokenizer or like.tokenizer
    like.config = dataclasses.replace(like.config, max_position_embeddings=512)
    rest = (1 - sure) / (len(labels) - 1)

    def scores_of(label):
        return np.log([sure if label == one else rest for one in labels])

    return TableModel(
        like, {token: scores_of(label) for token, label in tags.items()}, scores_of(other), labels=labels, extra=extra
    )


def answerer(starts, ends, *, nothing=0.0, extra=None) -> TableModel:
    """An answerer: token -> score of being the start, and of being the end; ``nothing``: of no answer; others -9."""
    tokens = {*starts, *ends} - {"[CLS]"}
    scores = {token: (starts.get(token, -9.0), ends.get(token, -9.0)) for token in tokens}
    like = bert.load(GOLDEN / "tiny_qa")
    like.config = dataclasses.replace(like.config, max_position_embeddings=512)
    return TableModel(like, scores | {"[CLS]": (nothing, 0.0)}, (-9.0, -9.0), extra=extra)
