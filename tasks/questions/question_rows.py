"""What questions on passages are, how people say that a file of them is to be read, and checks of its fields.

Not here: files (squad_files.py, span_files.py), and which questions are kept (questions.py).
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bert import surrogates
from bert.errors import InputError
from tasks.files import annotators
from tasks.files.examples import ReadReport
from tasks.files.records import short

FORMATS = ("auto", "squad", "multispanqa", "pico", "lines")
NO_DOCUMENT = "no file with its document"  # the reason of readers that have nothing to ask about
NO_PASSAGE = "no passage"
Spans = tuple[tuple[int, int], ...]


class Annotation(NamedTuple):
    """What one annotator marked; no spans: nothing in the passage answers the question.

    spans: [start, end) in code points of the context; ascending, not empty, not overlapping (they may touch).
    """

    annotator: str
    spans: Spans


class Gold(NamedTuple):
    """The texts of one annotator's answers as the file has them, by which a question is scored; none: no answer.

    Also those that have no position in the passage, so that there may be more golds than annotations.
    """

    annotator: str
    texts: tuple[str, ...]


class Question(NamedTuple):
    """A question on a passage.

    annotations: positions for training, in the order of the file; none where the question is not annotated.
    place: where it stands in the file. group: its article or document, which a split keeps whole.
    golds: texts for scoring, in the order of the file.
    untrainable: why training cannot use the question, "" where it can. Readers give the reason why annotations are
      missing, if any are; whether training can do without them is decided in questions.py.
    """

    id: str
    question: str
    context: str
    annotations: tuple[Annotation, ...]
    place: str
    group: str
    golds: tuple[Gold, ...] = ()
    untrainable: str = ""

    @property
    def content(self) -> tuple[str, str, tuple[Annotation, ...]]:
        """What a model is trained on."""
        return self.question, self.context, self.annotations


class Questions(NamedTuple):
    """Questions in the order of the file. The rows of the report are questions."""

    rows: list[Question]
    report: ReadReport


Found = Iterator[Question]  # what readers give


@dataclasses.dataclass(frozen=True)
class QuestionSettings:
    """How a file of questions is read."""

    format: str = "auto"  # squad, multispanqa, pico, lines; auto: by the file's content
    documents: str = ""  # pico: folder (or .tar.gz) with a DOCID.txt for each document, also in folders below it
    question: str = ""  # asked where the file has no question; pico: where empty, the key ("Participants")
    annotators: str = ""  # names with commas, only these; with a - before each, all but these; empty: all
    encoding: str = "utf-8"  # a name, or GLOB=NAME parts as for a corpus (bert/corpus/text_files.py)

    def __post_init__(self):
        if self.format not in FORMATS:
            raise InputError(f"format {self.format!r} must be one of {', '.join(FORMATS)}")
        annotators.kept(self.annotators)  # refuses what it does not take


class Tally:
    """What readers count: each kind of fault with its number and its first place."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, str]] = {}

    def add(self, what: str, place: str) -> None:
        before, first = self._counts.get(what, (0, place))
        self._counts[what] = (before + 1, first)

    def counts(self) -> dict[str, tuple[int, str]]:
        return dict(self._counts)

    def notes(self) -> list[str]:
        return [f"{what}: {count:,} (first {place})" for what, (count, place) in self._counts.items()]


def text_of(value: Any, where: str, tally: Tally) -> str:
    """A text whose unpaired surrogates are U+FFFD, one for one, so that offsets stay right."""
    if not isinstance(value, str):
        what = "is missing" if value is None else f"{short(value)} is no text"
        raise InputError(f"{where} {what}; each question needs a text there")
    if surrogates.contains(value):
        tally.add("texts with unpaired surrogates, which are now U+FFFD", where)
    return surrogates.replace(value)


def question_of(value: Any, where: str, settings: QuestionSettings, tally: Tally) -> str:
    """The text of a question, or that of the settings where the file has none."""
    if value is None and not settings.question:
        raise InputError(f"{where}: has no question; write it there, or set question to what is asked")
    value = settings.question if value is None or value == "" else value
    if value == "":
        tally.add("questions without a text", where)
    return text_of(value, f"{where}: question", tally)


def name_of(value: Any, where: str) -> str:
    """An id or a name, which may be a whole number; "" where there is none."""
    if value is None or isinstance(value, str):
        return value or ""
    if type(value) is not int:
        raise InputError(f"{where} {short(value)} must be text or a whole number; write it in quotes")
    return str(value)


def id_of(value: Any, where: str) -> str:
    """As name_of, for an id that must be there."""
    name = name_of(value, where)
    if not name:
        raise InputError(f"{where} is missing; texts and predictions are found by it")
    return name


def list_of(value: Any, where: str, what: str) -> list[Any]:
    """The value, which must be a list of ``what``."""
    if not isinstance(value, list):
        fault = "is missing" if value is None else f"{short(value)} is no list"
        raise InputError(f"{where} {fault}; it must be a list of {what}")
    return value


def object_of(value: Any, where: str, example: str) -> Mapping[str, Any]:
    """The value, which must be an object like the example."""
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: {short(value)} is no object; it must be like {example}")
    return value
