"""Questions on passages, with the spans that annotators marked: which reader, which questions are kept, and the split.

Not here: what a question is (question_rows.py), what files hold (squad_files.py; span_files.py for the other formats).

Formats, told by the first row where format is "auto": squad (`paragraphs`, or flat rows with `answers`), multispanqa
(`context` is a list of words), pico (`docid`), lines (`context` is a text; our own, described in span_files.py). Rows
are those of the list `data`, of a list, or an object a line; .gz is unpacked.

Which questions are kept. Where annotations are needed: those with the texts of an annotator's answers, for these are
what scores read; the others are counted by reason. `for_training` then leaves out those that teach nothing: without the
position of an answer, or with a passage in which nothing is visible. Else all of them, in their order, for each must
get its prediction; but a question whose document is not there has nothing to be asked about and is always dropped.
An annotator who marked nothing says "there is no answer" and is kept; one whose spans were all faulty says nothing.
Where an answer has no position and the other annotators marked nothing, the question is not one without an answer.
"""

import dataclasses
import json
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert.errors import InputError, listed
from bert.json_files import object_once
from bert.prediction.questions import Query
from tasks.files import annotators
from tasks.files.equal_texts import key_of
from tasks.files.examples import ReadReport, check_labelled, check_share, parts_of
from tasks.files.json_tables import read_jsonl
from tasks.files.records import Table, TableSettings, check_path, ending_of, short
from tasks.files.tables import OTHER_FORMATS
from tasks.files.text_lines import read_lines
from tasks.metrics import span_metrics
from tasks.questions.question_rows import (
    NO_DOCUMENT,
    NO_PASSAGE,
    Question,
    Questions,
    QuestionSettings,
    Tally,
    object_of,
)
from tasks.questions.span_files import read_multispanqa, read_pico, read_span_lines
from tasks.questions.squad_files import read_squad

READERS = {"squad": read_squad, "multispanqa": read_multispanqa, "pico": read_pico, "lines": read_span_lines}
_TABLES = (".csv", ".tsv", ".parquet")


def read_questions(path: str, settings: QuestionSettings, *, labelled: str) -> Questions:
    """The questions of a file.

    Args:
      labelled: "needed": questions that can be scored, see `for_scoring` and `for_training`; "if there": all, with what
        annotations they have; "no": all, annotations are not looked at.

    Raises:
      InputError: nothing there, another kind of file, bad JSON, a field that is missing or of another type, an id that
        stands twice, or no question left; in one line with the place and the way out.
    """
    check_labelled(labelled)
    try:
        table = _load(str(path), settings)
        if not table.rows:
            raise InputError(f"{path}: no questions in it; is it the right file?")
        chosen = settings.format if settings.format != "auto" else _format_of(table)
        tally = Tally()
        questions = list(READERS[chosen](table, settings, tally, labelled != "no"))
    except PermissionError as error:
        raise InputError(f"{error.filename}: may not be read by this user; change its permissions") from None
    if not questions:
        raise InputError(f"{path}: no questions in it; is it the right file?")
    _check_ids(questions)
    return _choose(questions, table, settings, labelled, tally)


def split(questions: Questions, share: float, seed: int, *, equal_apart: bool = False) -> tuple[Questions, Questions]:
    """(train, validation): a share of the groups split off at random, each part in the order of the file.

    Groups that share a passage (see equal_texts.py) count as one, if there are enough. A pure function of its
    arguments. A share of the groups is not that share of the questions where groups differ much. Groups of which
    nothing can be trained on do not count where others are there, and stay in the training part.

    Args:
      equal_apart: see `tasks.job.as_begun`; equal passages of several groups may be in both parts then.

    Raises:
      InputError: a share outside (0, 1), or too few groups for two parts.
    """
    check_share(share)
    own_N = [row.group for row in questions.rows]
    together_N = own_N if equal_apart else _joined(questions.rows)
    trained = [i for i, row in enumerate(questions.rows) if not row.untrainable] or range(len(questions.rows))

    def counted(group_N: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(group_N[i] for i in trained))

    def wanted(group_N: Sequence[str]) -> int:
        groups = len(counted(group_N))
        return min(round(groups * share), groups - 1)

    # Where too few would be left, groups are not joined; how many passages are in both parts is in the job's report.
    group_N = together_N if wanted(together_N) > 0 else own_N
    groups, take = counted(group_N), wanted(group_N)
    joined = len(set(own_N)) - len(set(group_N))
    if take < 1:
        raise InputError(
            f"{questions.report.source}: {len(groups)} articles or documents are too few to split off {share:g} of "
            f"them; name a validation file, or set validation_share to {1 / len(groups) if len(groups) > 1 else 0:.2g}"
        )
    order = np.random.default_rng(seed).permutation(len(groups))
    chosen = {groups[i] for i in order[:take]}
    is_validation = np.array([group in chosen for group in group_N])
    notes = [f"{joined:,} articles or documents share a passage with another one and stay in its part"] * bool(joined)
    train, validation = parts_of(questions.report, is_validation, share, seed, notes)
    return (
        Questions([questions.rows[i] for i in train.rows], train.report),
        Questions([questions.rows[i] for i in validation.rows], validation.report),
    )


def placed(questions: Questions) -> Questions:
    """Those that can be trained on, under the report of all."""
    return questions._replace(rows=[row for row in questions.rows if not row.untrainable])


def for_training(questions: Questions) -> Questions:
    """Those that can be trained on; the report counts the others as dropped."""
    report, rows = questions.report, placed(questions).rows
    dropped = dict(report.dropped)
    for row in questions.rows:
        if row.untrainable:
            count, first = dropped.get(row.untrainable, (0, row.place))
            dropped[row.untrainable] = (count + 1, first)
    if not rows:
        raise _none_left(report.source, report.read, dropped)
    return Questions(rows, dataclasses.replace(report, kept=len(rows), dropped=dropped))


def for_scoring(questions: Questions) -> Questions:
    """All of them; the report says which of them `for_training` would drop, and of which f1 counts characters."""
    tally = Tally()
    characters = span_metrics.by_characters({row.id: row.context for row in questions.rows})
    for row in questions.rows:
        if row.untrainable:
            tally.add(f"questions that are scored but could not be trained on ({row.untrainable})", row.place)
        if row.id in characters:
            tally.add("questions of which f1 counts characters as tokens, for their language has no blanks", row.place)
    report = questions.report
    return questions._replace(report=dataclasses.replace(report, notes=(*report.notes, *tally.notes())))


def _joined(rows: Sequence[Question]) -> list[str]:
    """For each question its group, or the first of the groups that it shares passages with, also through others."""
    before: dict[str, str] = {}  # group -> an earlier one that it is joined to, or itself
    of_passage: dict[Hashable, str] = {}

    def first(group: str) -> str:
        while before.setdefault(group, group) != group:
            group = before[group]
        return group

    groups = [row.group for row in rows]
    places = {group: i for i, group in reversed(list(enumerate(groups)))}
    for group, passage in dict.fromkeys((row.group, row.context) for row in rows):
        pair = first(group), first(of_passage.setdefault(key_of([passage]), group))
        before[max(pair, key=places.__getitem__)] = min(pair, key=places.__getitem__)
    return [first(group) for group in groups]


def queries_of(rows: Iterable[Question]) -> list[Query]:
    """The questions as a reader takes them, by the names that messages call them."""
    return [Query(row.question, row.context, f"{row.place}: question {row.id}") for row in rows]


def passage_keys(questions: Questions) -> list[Hashable]:
    """A key of each passage, once; of equal ones (see equal_texts.py) the same."""
    return list(dict.fromkeys(key_of([context]) for context in dict.fromkeys(row.context for row in questions.rows)))


def _load(path: str, settings: QuestionSettings) -> Table:
    """The rows of a JSON file: a list of objects, that in the object's list `data`, or an object a line."""
    file = check_path(path)
    if file.is_dir():
        inner = listed(sorted(entry.name for entry in file.iterdir()), 10)
        raise InputError(f"{path}: a folder with {inner}; name a file of questions")
    ending = ending_of(file)
    if ending in OTHER_FORMATS or ending in _TABLES:
        way_out = OTHER_FORMATS.get(ending, "write it as json lines with id, question, context and annotations")
        raise InputError(f"{path}: {ending} files are not read as questions; {way_out}")
    lined = TableSettings(encoding=settings.encoding)
    if ending in (".jsonl", ".ndjson"):
        return read_jsonl(path, lined)
    text = "\n".join(read_lines(path, settings.encoding))
    if not text.strip():
        return Table((), [], [], (), path)
    begin = len(text) - len(text.lstrip())
    try:
        value, end = json.JSONDecoder(object_pairs_hook=object_once).raw_decode(text, begin)
    except (ValueError, RecursionError) as error:
        where, fault = path, str(error)
        if isinstance(error, json.JSONDecodeError):
            where, fault = f"{path}:{error.lineno}", f"{error.msg}, column {error.colno}"
        raise InputError(f"{where}: not JSON ({fault}); questions are read from SQuAD json or json lines") from None
    if text[end:].strip():
        return read_jsonl(path, lined)
    rows = _rows(path, value)
    return Table((), rows, [f"{path}: row {i}" for i in range(1, len(rows) + 1)], (), path)


def _rows(path: str, value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict) and "data" not in value and ("context" in value or "docid" in value):
        return [value]  # a file of one line
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        inside = f"it holds {listed(value, 10) or 'nothing'}" if isinstance(value, dict) else short(value)
        raise InputError(f"{path}: no list 'data' ({inside}); write {{'data': [...]}}, the list alone, or json lines")
    for i, row in enumerate(rows, 1):
        object_of(row, f"{path}: row {i}", "{'title': ..., 'paragraphs': [...]} or {'question': ..., 'context': ...}")
    return rows


def _format_of(table: Table) -> str:
    first = table.rows[0]
    if first.get("docid") is not None:
        return "pico"
    if isinstance(first.get("context"), list):
        return "multispanqa"
    if any(first.get(name) is not None for name in ("paragraphs", "answers", "is_impossible")):
        return "squad"
    if "context" in first:
        return "lines"
    raise InputError(
        f"{table.places[0]}: has {listed(first, 10) or 'no fields'}; no format of questions is like that, see "
        f"{', '.join(READERS)}"
    )


def _check_ids(questions: Iterable[Question]) -> None:
    places: dict[str, str] = {}
    for question in questions:
        first = places.setdefault(question.id, question.place)
        if first != question.place:
            raise InputError(f"{question.place}: the id {short(question.id)} is also that of {first}; make ids unique")


def _choose(
    questions: list[Question], table: Table, settings: QuestionSettings, labelled: str, tally: Tally
) -> Questions:
    """The questions that are kept, with the annotators that are kept, and the report."""
    kept = annotators.kept(settings.annotators)
    known = dict.fromkeys(gold.annotator for question in questions for gold in question.golds)
    dropped, kept_with, rows = Tally(), Tally(), []
    groups: dict[str, str] = {}
    left_out = Tally()
    for full in questions:
        question = _with_annotators(full, kept)
        if len(question.golds) < len(full.golds):
            left_out.add(f"questions of which annotators {settings.annotators} leaves golds out", question.place)
        why = question.untrainable
        if why == NO_DOCUMENT or (why and labelled == "needed" and not question.golds):
            dropped.add(why, question.place)
            continue
        if labelled != "needed" and why and (labelled == "if there" or why == NO_PASSAGE):
            kept_with.add(f"{why}, but kept", question.place)
        # The same passage in both parts of a split would be a leak.
        rows.append(question._replace(group=question.group or groups.setdefault(question.context, question.id)))
    notes = [*table.notes, *tally.notes(), *left_out.notes(), *kept_with.notes()]
    unknown = [name for name in sorted(kept.names) if name not in known] if labelled != "no" else []
    absent = f"annotators {', '.join(unknown)}: no question has them; there are {listed(known, 10)}"
    if unknown:
        notes.append(absent)
    if not rows:
        raise _none_left(table.path, len(questions), dropped.counts(), f"; {absent}" if unknown else "")
    return Questions(rows, ReadReport(table.path, len(questions), len(rows), dropped.counts(), tuple(notes)))


def _with_annotators(question: Question, kept: annotators.Kept) -> Question:
    """The question with the annotators that are kept, and why it cannot be trained on, if so."""
    chosen = tuple(annotation for annotation in question.annotations if annotation.annotator in kept)
    golds = tuple(gold for gold in question.golds if gold.annotator in kept)
    names = {annotation.annotator for annotation in chosen}
    lost = question.untrainable and any(any(gold.texts) and gold.annotator not in names for gold in golds)
    if lost and not any(annotation.spans for annotation in chosen):
        chosen = ()
    why = ""
    if _is_blank(question.context) and question.untrainable != NO_DOCUMENT:
        why = NO_PASSAGE
    elif not chosen and question.golds and not golds:
        why = "none of its annotators is kept"
    elif not chosen:
        why = question.untrainable or "no annotation"
    return question._replace(annotations=chosen, golds=golds, untrainable=why)


def _none_left(path: str, read: int, dropped: Mapping[str, tuple[int, str]], more: str = "") -> InputError:
    why = ", ".join(f"{reason}: {count:,}" for reason, (count, _) in dropped.items())
    return InputError(
        f"{path}: none of {read:,} questions can be used ({why}){more}; is it the right file, and are documents and "
        "annotators right?"
    )


def _is_blank(text: str) -> bool:
    """Whether nothing in a text is visible: blanks, controls, and zero-width characters at most."""
    return all(character.isspace() or unicodedata.category(character) in ("Cc", "Cf") for character in text)
