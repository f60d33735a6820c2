"""Encodes questions and passages as windows [CLS] question [SEP] passage [SEP], for bio_mrc.py and squad.py."""

import dataclasses
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from absl import logging

from bert.data import passages
from bert.data.passages import Passages
from bert.errors import InputError, check_range
from bert.prediction.scores import check_rows
from bert.tokenizer.alignment import Pieces
from bert.tokenizer.tokenizer import Tokenizer


class PassageQuestion(Protocol):
    """A question about a passage; ``name`` is what messages call it."""

    @property
    def question(self) -> str: ...

    @property
    def context(self) -> str: ...

    @property
    def name(self) -> str: ...


class Query(NamedTuple):
    """A `PassageQuestion` that is given to `predict`."""

    question: str
    context: str
    name: str


@dataclasses.dataclass(frozen=True)
class WindowSettings:
    """How a question and its passage fit into rows."""

    max_length: int = 384  # tokens of a window at most: [CLS] question [SEP] passage [SEP]
    window_step: int = 128  # tokens from the start of a window over the passage to the start of the next
    max_question: int = 64  # tokens of a question at most; longer ones are truncated, with a warning

    def __post_init__(self) -> None:
        for name in ("max_length", "window_step", "max_question"):
            check_range(name, getattr(self, name), at_least=1)


def fitted(settings: WindowSettings, tokenizer: Tokenizer) -> WindowSettings:
    """The settings with ``max_question`` low enough that any question leaves room for a window's step: a finished model
    answers whatever it is asked, where training refuses a question that is too long for its settings."""
    room = settings.max_length - settings.window_step - tokenizer.template.special_tokens(pair=True)
    return dataclasses.replace(settings, max_question=max(1, min(settings.max_question, room)))


def windows_of(
    queries: Sequence[PassageQuestion], tokenizer: Tokenizer, settings: WindowSettings
) -> tuple[Passages, list[Pieces]]:
    """The windows, and where the pieces of each passage stand in it.

    Raises InputError, naming a question, where it leaves less room than the step.
    """
    questions = tokenizer.encode_ids([query.question for query in queries])
    long = [query.name for query, ids in zip(queries, questions, strict=True) if len(ids) > settings.max_question]
    if long:
        logging.warning(
            "%d of %d questions are longer than max_question, %d tokens, and were cut (first %s)",
            *(len(long), len(queries), settings.max_question, long[0]),
        )
    template = tokenizer.template
    questions = [ids[: settings.max_question] for ids in questions]
    before = [[*template.before, *ids, *template.between] for ids in questions]
    lengths = list(map(len, questions))
    longest = max(lengths, default=0)
    special = template.special_tokens(pair=True)
    room = settings.max_length - longest - special
    if lengths and room < settings.window_step:
        name = queries[lengths.index(longest)].name
        raise InputError(
            f"{name}: its question of {longest} tokens leaves room for {max(room, 0)} of the passage, less than "
            f"the window step {settings.window_step}; {_smaller(settings, room, special)}"
        )
    contexts: dict[str, Any] = {}  # many questions are about one passage
    for query in queries:
        contexts.setdefault(query.context, None)
    for text, encoding in zip(contexts, tokenizer.encode_batch(list(contexts)), strict=True):
        contexts[text] = (encoding.ids, Pieces(encoding.offsets, text))
    ids_N, pieces_N = zip(*(contexts[query.context] for query in queries), strict=True) if queries else ((), ())
    cut = passages.cut(
        ids_N,
        before,
        template.after,
        max_length=settings.max_length,
        step=settings.window_step,
        pair=bool(template.type_of_b),
    )
    return cut, list(pieces_N)


def _smaller(settings: WindowSettings, room: int, special: int) -> str:
    """The settings with which windows of ``max_length`` have room for a step after every question."""
    if room >= 1:
        return f"set window_step to {room}"
    question = settings.max_length // 4
    step = min(settings.window_step, settings.max_length - question - special)
    if step < 1:
        return "raise max_length"
    return f"set max_question to {question} and window_step to {step}, or raise max_length"


def queries_of(rows: Sequence[Any]) -> list[Query]:
    """Questions given as mappings with "question" and "context", or as pairs of texts; InputError for other rows."""
    check_rows(rows)
    queries = []
    for number, row in enumerate(rows):
        values = (row.get("question"), row.get("context")) if isinstance(row, Mapping) else row
        if isinstance(values, str) or not isinstance(values, Sequence) or len(values) != 2:
            raise InputError(f"row {number} is {reprlib.repr(row)}; it must hold a question and a context")
        for name, value in zip(("question", "context"), values, strict=True):
            if not isinstance(value, str):
                raise InputError(f"row {number}: {name} is {reprlib.repr(value)}; it must be a text")
        queries.append(Query(values[0], values[1], f"row {number}"))
    return queries
