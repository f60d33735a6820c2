"""Questions on passages for tests of start-and-end reading comprehension."""

from bert.prediction.squad import SquadOptions
from bert.tokenizer.backends import load_tokenizer
from tasks.files.reports import ReadReport
from tasks.questions.question_rows import Annotation, Gold, Question, Questions
from tests.bert.prediction.table_model import GOLDEN

TOKENIZER = load_tokenizer(GOLDEN / "tiny_qa")
SMALL = SquadOptions(max_length=24, window_step=6, max_question=8)


def question(context, *spans, id="q", asked="Where?") -> Question:
    """Each of the spans, [start, end) or None, is one annotator's."""
    votes = tuple(Annotation(str(i), (span,) if span else ()) for i, span in enumerate(spans, 1))
    golds = tuple(Gold(name, tuple(context[a:b] for a, b in own)) for name, own in votes)
    return Question(id, asked, context, votes, f"file:{id}", id, golds)


def part(*rows) -> Questions:
    return Questions(list(rows), ReadReport("file", len(rows), len(rows)))
