"""What becomes of questions that were read: those for training and those for scoring, and the split for validation."""

import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np

from bert.errors import InputError
from tasks.files.equal_texts import key_of
from tasks.files.reports import Tally, none_left
from tasks.files.splits import check_share
from tasks.metrics import span_metrics
from tasks.questions.question_rows import Question, Questions


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
    file_N = [row.group for row in questions.rows]
    together_N = file_N if equal_apart else _joined(questions.rows)
    trained = [i for i, row in enumerate(questions.rows) if not row.untrainable] or range(len(questions.rows))

    def counted(group_N: Sequence[str]) -> tuple[list[str], int]:
        """The groups that count, and how many of them to hold out."""
        groups = list(dict.fromkeys(group_N[i] for i in trained))
        return groups, min(round(len(groups) * share), len(groups) - 1)

    # Where too few would be left, groups are not joined; how many passages are in both parts is in the job's report.
    group_N = together_N if counted(together_N)[1] > 0 else file_N
    groups, take = counted(group_N)
    joined = len(set(file_N)) - len(set(group_N))
    if take < 1:
        raise InputError(
            f"{questions.report.source}: {len(groups)} articles or documents are too few to split off {share:g} of "
            f"them; name a validation file, or set validation_share to {1 / len(groups) if len(groups) > 1 else 0:.2g}"
        )
    order = np.random.default_rng(seed).permutation(len(groups))
    chosen = {groups[i] for i in order[:take]}
    is_validation = np.array([group in chosen for group in group_N])
    notes = [f"{joined:,} articles or documents share a passage with another one and stay in its part"] * bool(joined)
    return questions.divided(is_validation, share, seed, notes)


def placed(questions: Questions) -> Questions:
    """Those that can be trained on, under the report of all."""
    return questions._replace(rows=[row for row in questions.rows if not row.untrainable])


def for_training(questions: Questions) -> Questions:
    """Those that can be trained on; the report counts the others as dropped."""
    report, rows = questions.report, placed(questions).rows
    dropped = Tally(report.dropped)
    for row in questions.rows:
        if row.untrainable:
            dropped.add(row.untrainable, row.place)
    if not rows:
        raise none_kept(report.source, report.read, dropped)
    return Questions(rows, dataclasses.replace(report, kept=len(rows), dropped=dropped.counts))


def for_scoring(questions: Questions) -> Questions:
    """All of them; the report says which of them `for_training` would drop, and of which f1 counts characters."""
    tally = Tally()
    characters = span_metrics.by_characters({row.id: row.context for row in questions.rows})
    for row in questions.rows:
        if row.untrainable:
            tally.add(f"questions that are scored but could not be trained on ({row.untrainable})", row.place)
        if row.id in characters:
            tally.add("questions of which f1 counts characters as tokens, for their language has no blanks", row.place)
    return questions._replace(report=questions.report.with_notes(tally.notes()))


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


def passage_keys(questions: Questions) -> list[Hashable]:
    """A key of each passage, once; of equal ones (see equal_texts.py) the same."""
    return list(dict.fromkeys(key_of([context]) for context in dict.fromkeys(row.context for row in questions.rows)))


def none_kept(path: str, read: int, dropped: Tally, more: str = "") -> InputError:
    advice = f"{more}is it the right file, and are documents and annotators right?"
    return none_left(path, "questions", read, dropped.counts, advice)
