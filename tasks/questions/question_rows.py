"""`Question`, the settings of a file of questions (`QuestionSettings`), and checks of its fields.

Not here: files (squad_files.py, span_files.py), and which questions are kept (questions.py).
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert import surrogates
from bert.errors import InputError
from bert.json_files import object_once
from tasks.annotations.annotated_texts import AnnotatedText, AnnotationSettings
from tasks.files import annotators
from tasks.files.cells import TableCell, short
from tasks.files.records import cell_of
from tasks.files.reports import ReadRows, Tally

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
    label, of_text: of texts from annotation tools, what spans are called, and the text with its annotations.
    """

    id: str
    question: str
    context: str
    annotations: tuple[Annotation, ...]
    place: str
    group: str
    golds: tuple[Gold, ...] = ()
    untrainable: str = ""
    label: str = ""
    of_text: AnnotatedText | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.place}: question {self.id}"

    @property
    def content(self) -> tuple[str, str, tuple[Annotation, ...]]:
        """What a model is trained on."""
        return self.question, self.context, self.annotations


Questions = ReadRows[Question]


@dataclasses.dataclass(frozen=True)
class QuestionSettings(AnnotationSettings):
    """How a file of questions is read."""

    # squad, multispanqa, pico, lines; doccano, label_studio, prodigy, brat (exports of these); auto: by the content
    format: str = "auto"
    documents: str = ""  # pico: folder (or .tar.gz) with a DOCID.txt for each document, also in folders below it
    question: str = ""  # asked where the file has no question; pico: where empty, the key ("Participants")
    # Of annotation tools, what is asked for each label: PER=Who is named?,LOC=Which places? (or as JSON: {"PER": "Who
    # is named?"}). A label without a question is asked by its name.
    questions: str = ""
    annotators: str = ""  # names to keep (anna,ben), or names to leave out (-cleo); empty: all

    def __post_init__(self) -> None:
        super().__post_init__()
        questions_by_label(self.questions)  # refuses what is no such setting
        annotators.choice_of(self.annotators)  # refuses what is no such setting


def questions_by_label(setting: str) -> dict[str, str]:
    """Label -> question of a setting like "PER=Who?,LOC=Where?", or of an object as JSON."""
    if setting.lstrip().startswith("{"):
        try:
            pairs = list(json.loads(setting, object_pairs_hook=object_once).items())
        except (ValueError, RecursionError) as error:
            raise InputError(f"questions {short(setting)} is no JSON ({error}); write LABEL=QUESTION,...") from None
    else:
        parts = re.split(r",(?=[^,=]*=)", setting.strip(" ,")) if setting.strip(" ,") else []
        pairs = [tuple(word.strip() for word in part.split("=", 1)) for part in parts]
    asked: dict[str, str] = {}
    for pair in pairs:
        if len(pair) != 2 or not pair[0] or not isinstance(pair[1], str):
            raise InputError(
                f"questions: {short('='.join(map(str, pair)))} must be LABEL=QUESTION, with commas between"
            )
        if pair[0] in asked:
            raise InputError(f"questions names {short(pair[0])} twice; give one question")
        asked[pair[0]] = pair[1] or pair[0]
    return asked


class QuestionFields:
    """The fields of a file as its settings say, checked; faults are counted in ``tally``.

    annotated: whether annotations are read.
    """

    def __init__(self, settings: QuestionSettings, annotated: bool):
        self.settings, self.annotated, self.tally = settings, annotated, Tally()

    def text(self, row: Mapping[str, Any], place: str, column: str) -> str:
        """A text; each of its unpaired surrogates becomes U+FFFD, so that offsets stay right."""
        return self.text_of(cell_of(row, place, column))

    def text_of(self, cell: TableCell) -> str:
        if not isinstance(cell.value, str):
            raise _refused(cell, "text", "each question needs a text there")
        if surrogates.contains(cell.value):
            self.tally.add("texts with unpaired surrogates, which are now U+FFFD", cell.place)
        return surrogates.replace(cell.value)

    def texts(self, cell: TableCell) -> list[str]:
        """The texts of a list of words."""
        words = enumerate(list_of(cell, "words"), 1)
        return [self.text_of(TableCell(f"{cell.place}: word {i}", word)) for i, word in words]

    def question(self, value: Any, place: str) -> str:
        """The text of a question, or that of the settings where the file has none."""
        if value is None and not self.settings.question:
            raise InputError(f"{place}: has no question; write it there, or set question to what is asked")
        value = self.settings.question if value is None or value == "" else value
        if value == "":
            self.tally.add("questions without a text", place)
        return self.text_of(TableCell(f"{place}: question", value))


def name_of(cell: TableCell) -> str:
    """An id or a name, which may be a whole number; "" where there is none."""
    if cell.value is None or isinstance(cell.value, str):
        return cell.value or ""
    if type(cell.value) is not int:
        raise cell.error("must be text or a whole number; write it in quotes")
    return str(cell.value)


def id_of(cell: TableCell) -> str:
    """As name_of, for an id that must be there."""
    name = name_of(cell)
    if not name:
        raise InputError(f"{cell.place} is missing; texts and predictions are found by it")
    return name


def list_of(cell: TableCell, what: str) -> list[Any]:
    """The value, which must be a list of ``what``."""
    if not isinstance(cell.value, list):
        raise _refused(cell, "list", f"it must be a list of {what}")
    return cell.value


def object_of(cell: TableCell, example: str) -> Mapping[str, Any]:
    """The value, which must be an object like the example."""
    if not isinstance(cell.value, Mapping):
        raise _refused(cell, "object", f"it must be like {example}")
    return cell.value


def _refused(cell: TableCell, kind: str, rule: str) -> InputError:
    return InputError(f"{cell.place} is missing; {rule}") if cell.value is None else cell.error(f"is no {kind}; {rule}")
