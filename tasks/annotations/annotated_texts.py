"""A text with the labelled spans of its annotators, and how files of such texts are read (`AnnotationSettings`).

Not here: the tools' formats (a file each, listed in tools.py), and what becomes of offsets (marks.py).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bert.errors import InputError, check_choice
from tasks.files.records import comma_names

OFFSETS = ("auto", "code_points", "utf16", "bytes")
NO_SPANS = ("auto", "nothing", "unlabelled")


class LabelledSpan(NamedTuple):
    """[start, end) in code points of the text, neither empty nor blank; spans may overlap and be equal."""

    start: int
    end: int
    label: str


class Origin(NamedTuple):
    """Where a text came from: the tool (a name in tools.py), the unit of its offsets, and what the tool wrote."""

    tool: str
    offsets: str
    row: Mapping[str, Any]


class AnnotatedText(NamedTuple):
    """A text.

    id: "" where the file has none.
    annotations: (annotator, spans) of each annotator; none where the text is not annotated. An annotator without spans
      read the text and found nothing.
    place: "FILE:LINE", "FILE: row N", or the file.
    document: what must not be cut apart by a split.
    origin: a writer of the same tool keeps the fields of its row.
    lost: (annotator, label) of those whose spans with a label are all left out, so that nothing is known of it.
    """

    id: str
    text: str
    annotations: tuple[tuple[str, tuple[LabelledSpan, ...]], ...]
    place: str
    document: str
    origin: Origin
    lost: tuple[tuple[str, str], ...] = ()


class AnnotatedTexts(NamedTuple):
    """What is in an export.

    tool: its name in tools.py.
    annotators: those to choose from; () where none are named.
    notes: what was left out and why, a line each.
    """

    texts: list[AnnotatedText]
    tool: str
    annotators: tuple[str, ...]
    notes: list[str]


@dataclasses.dataclass(frozen=True)
class AnnotationSettings:
    """How an export of an annotation tool is read."""

    format: str = "auto"  # doccano, label_studio, prodigy, brat; auto: by the content
    text: str = ""  # field with the text, where an export has several; empty: the one in which the spans are
    # What offsets count: code_points, utf16 (as JavaScript does), bytes (of UTF-8); auto: by the texts of the spans
    # where the tool writes them, else by the words.
    offsets: str = "auto"
    # A text without spans in doccano and brat, which write it the same whether somebody read it or not. nothing: there
    # is nothing in it; unlabelled: nobody annotated it. auto: nothing, but unlabelled where each annotator has a file.
    no_spans: str = "auto"
    # label_studio, where predictions are written and the input does not tell: the names of the tags <Labels> and <Text>
    # in the labelling interface.
    controls: str = "label,text"
    encoding: str = "utf-8"  # a name, or GLOB=NAME parts as for a corpus (bert/corpus/text_files.py)

    def __post_init__(self) -> None:
        check_choice("offsets", self.offsets, OFFSETS)
        check_choice("no_spans", self.no_spans, NO_SPANS)
        if len(comma_names(self.controls)) != 2:
            raise InputError(f"controls is {self.controls!r}; it must be two names, such as label,text")


class PredictedText(NamedTuple):
    """A text with the spans that a model found, for a tool to show.

    words: [start, end) of each word.
    scores: of each span, the geometric mean of the probabilities of its tags. score: of the text, that of all its words
      (tagging) or of the scores of its spans (bio_mrc); None of a text without spans (bio_mrc).
    origin: as of `AnnotatedText`; None of a text that came from no tool.
    """

    id: str
    text: str
    words: Sequence[tuple[int, int]]
    spans: Sequence[LabelledSpan]
    scores: Sequence[float]
    score: float | None
    origin: Origin | None

    def row_of(self, tool: str) -> dict[str, Any]:
        """A copy of the row that the tool wrote; empty where the text is not from that tool."""
        return dict(self.origin.row) if self.origin and self.origin.tool == tool else {}
