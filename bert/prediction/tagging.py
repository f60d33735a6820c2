"""Predicts a tag for each word, from the scores of its first piece, and the entities.

Training is tasks/tagging/job.py. Axes: K word of all sentences, one after the other, C tag.

Source: Devlin et al. 2018, section 5.3 (the first piece represents the word).
"""

import dataclasses
import itertools
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert import bio_tags, words
from bert.architectures import ModelConfig
from bert.data import passages
from bert.data.passages import Passages
from bert.errors import InputError, check_choice
from bert.prediction import scores, tag_decoding, task_options, uncertainty
from bert.prediction.scores import Scorer
from bert.tokenizer.tokenizer import Tokenizer

KEY = "tagging"  # of config.json


@dataclasses.dataclass(frozen=True)
class TaggingOptions:
    """How words become windows, and probabilities tags."""

    max_length: int = 128  # tokens of a window at most, including [CLS] and [SEP]; longer sentences have several
    window_step: int = 64  # tokens from the start of a window to the start of the next
    # Of B/I/O tags. viterbi: the likeliest sequence in which I-X follows only B-X and I-X; greedy, and for other tags
    # always: the likeliest tag of each word.
    decoding: str = "viterbi"

    def __post_init__(self) -> None:
        check_choice("decoding", self.decoding, tag_decoding.DECODING)
        if not 1 <= self.window_step <= self.max_length - 2:
            raise InputError(
                f"window_step is {self.window_step}; it must be from 1 to {self.max_length - 2}, which max_length "
                f"{self.max_length} leaves beside [CLS] and [SEP]"
            )

    def to_json(self) -> dict[str, Any]:
        return {KEY: dataclasses.asdict(self)}


class WordRow(NamedTuple):
    """Words to tag; of a text also where they stand in it, [start, end) in code points."""

    words: list[str]
    text: str | None = None
    places: Sequence[tuple[int, int]] = ()


class Sentences(NamedTuple):
    """N sentences as windows of pieces.

    first_K: int64, each word's first piece among those of all sentences. starts: int64 [N + 1], where each sentence
    begins among the words.
    """

    passages: Passages
    first_K: np.ndarray
    starts: np.ndarray

    @property
    def place_K(self) -> np.ndarray:
        """int64: where each word's first piece stands in the windows' token ids, in the window in which it counts."""
        place_K: np.ndarray = self.passages.place_K[self.first_K]
        return place_K


def options_of(extra: Mapping[str, Any], config: ModelConfig) -> TaggingOptions:
    """The settings in a model directory; of a model that others trained the usual ones, as far as it has positions.

    Others' tags are decoded greedily: many of their models know IOB1, where an I begins an entity after an O.
    """
    stored = extra if KEY in extra else {KEY: {"decoding": "greedy"}}
    return task_options.read(TaggingOptions, stored, KEY, config.max_length)


def windows_of(words_N: Sequence[Sequence[str]], tokenizer: Tokenizer, options: TaggingOptions) -> Sentences:
    """The windows over the sentences. A word of which no piece is left (such as a zero-width mark) is [UNK]."""
    flat = [word for words in words_N for word in words]
    known = dict.fromkeys(flat)
    pieces = dict(zip(known, tokenizer.encode_ids(list(known)), strict=True))
    ids_K = [pieces[word] or [tokenizer.unk_id] for word in flat]
    starts = np.concatenate([[0], np.cumsum([len(words) for words in words_N])]).astype(np.int64)
    first_K = np.concatenate([[0], np.cumsum([len(ids) for ids in ids_K])]).astype(np.int64)
    joined = [[i for ids in ids_K[a:b] for i in ids] for a, b in itertools.pairwise(starts)]
    sizes: Any = {"max_length": options.max_length, "step": options.window_step}
    before, after = [tokenizer.template.before] * len(joined), tokenizer.template.after
    cut = passages.cut(joined, before, after, pair=False, **sizes)
    return Sentences(cut, first_K[:-1], starts)


def tags(p_KC: np.ndarray, starts: np.ndarray, labels: Sequence[str], options: TaggingOptions) -> list[list[str]]:
    """The tags of each sentence.

    Args:
      p_KC: float [K, C], probabilities of each word's tags.
      starts: int [N + 1], where each sentence begins in K.
    """
    if options.decoding == "viterbi" and bio_tags.are_bio(labels):
        with np.errstate(divide="ignore"):
            tags_K = tag_decoding.viterbi(np.log(p_KC), starts, *tag_decoding.follows(labels))
    else:
        tags_K = p_KC.argmax(1)
    return [[labels[i] for i in tags_K[a:b]] for a, b in itertools.pairwise(starts)]


def words_of(rows: Sequence[Any]) -> list[WordRow]:
    """The words of each row.

    Args:
      rows: lists of words, mappings with "tokens", or texts (also under "text"), which are cut as in bert/words.py.

    Raises InputError for any other row or word, by numbers from 0.
    """
    scores.check_rows(rows)
    word_rows = []
    for number, row in enumerate(rows):
        value = row.get("tokens", row.get("text")) if isinstance(row, Mapping) else row
        if isinstance(value, str):
            places = words.places_of_words(value)
            word_rows.append(WordRow([value[a:b] for a, b in places], value, places))
        elif isinstance(value, Sequence):
            wrong = next((i for i, word in enumerate(value) if not isinstance(word, str) or not word), None)
            if wrong is not None:
                raise InputError(
                    f"row {number}: word {wrong} is {reprlib.repr(value[wrong])}; it must be a text that is not empty"
                )
            word_rows.append(WordRow(list(value)))
        else:
            raise InputError(
                f"row {number} is {reprlib.repr(row)}; it must be a text, a list of words, or hold one as 'tokens'"
            )
    return word_rows


def answers(
    p_KC: np.ndarray, sentences: Sentences, rows: Sequence[WordRow], labels: Sequence[str], options: TaggingOptions
) -> list[dict[str, Any]]:
    """For each sentence ``{"tokens", "tags", "probabilities", "entities"}``.

    tags: as the model names them. probabilities: of each word's tag. entities (where tags mark them, in any scheme of
    bio_tags.py): ``{"type", "start", "end", "text"}``, in words, or in characters where the row was a text; the end is
    exclusive.
    """
    index = {label: i for i, label in enumerate(labels)}
    predictions = []
    tags_N, p_N = tags(p_KC, sentences.starts, labels, options), passages.parts(p_KC, sentences.starts)
    for row, row_tags, p_TC in zip(rows, tags_N, p_N, strict=True):
        shares = [float(p_C[index[tag]]) for p_C, tag in zip(p_TC, row_tags, strict=True)]
        prediction: dict[str, Any] = {"tokens": row.words, "tags": row_tags, "probabilities": shares}
        if bio_tags.are_entities(labels):
            prediction["entities"] = [_entity(row, *span) for span in entities(row_tags)]
        predictions.append(prediction)
    return predictions


def entities(row_tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """(type, first, last + 1) of each entity of tags in any scheme (see bio_tags.py)."""
    return bio_tags.spans(bio_tags.repaired(row_tags))


def _entity(row: WordRow, kind: str, first: int, stop: int) -> dict[str, Any]:
    start, end, text = first, stop, " ".join(row.words[first:stop])
    if row.text is not None:
        start, end = row.places[first][0], row.places[stop - 1][1]
        text = row.text[start:end]
    return {"type": kind, "start": start, "end": end, "text": text}


def predict(scorer: Scorer, rows: Sequence[Any], *, details: bool = False, measure: str = "") -> list[dict[str, Any]]:
    """See `answers`; with ``details`` also "shares", each tag's probability for each word; with ``measure`` also the
    uncertainty under its name (uncertainty.py). ``rows``: `words_of`."""
    word_rows = words_of(rows)
    options = options_of(scorer.extra, scorer.config)
    sentences = windows_of([row.words for row in word_rows], scorer.tokenizer, options)
    p_KC = probabilities(scorer, sentences, options)
    predictions = answers(p_KC, sentences, word_rows, scorer.labels, options)
    if details:
        for prediction, p_TC in zip(predictions, passages.parts(p_KC, sentences.starts), strict=True):
            prediction["shares"] = [dict(zip(scorer.labels, map(float, p_C), strict=True)) for p_C in p_TC]
    return uncertainty.added(predictions, measure, p_KC, sentences.starts)


def probabilities(scorer: Scorer, sentences: Sentences, options: TaggingOptions) -> np.ndarray:
    """float64 [K, C]: the probabilities of each word's tags, in the order of the model's labels."""
    logits_KC = scorer.of_tokens(sentences.passages.encoded, options.max_length)
    return scores.softmax(logits_KC[sentences.place_K])
