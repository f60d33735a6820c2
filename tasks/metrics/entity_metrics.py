"""Metrics of tagged sentences: precision, recall and F1 of entities, in all and by type; accuracy of tags.

Pure functions of tags; no files, no model. The rules are those of seqeval 1.2.2; entity_metrics_test.py compares the
values. This file also compares two taggings of a sentence in which some words have no tag, for agreement.py.

Rules:
  Tags. O, B-TYPE and I-TYPE; plain B and I are of one type without a name, called "_". Others are refused.
  Entities. A B starts one, and an I continues the one of its type just before it. The rule decides about any other
    I: "lenient" (seqeval's default, and conlleval's) starts an entity there, "strict" (seqeval's strict mode with
    IOB2) does not count it. Numbers under the two rules cannot be compared, so each score names its rule.
  Hits. An entity is correct if the same sentence has one with the same type, start and end. Sentences are never joined.
  Undefined. None with a reason, instead of seqeval's 0 with a warning: precision without predicted entities, recall
    without gold ones, F1 without either. Macro F1 is the mean over the types that are in gold or predicted tags.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from bert import bio_tags
from bert.errors import InputError, check_choice
from tasks.metrics.score import Score

RULES = {
    "lenient": "lenient rule: an I without its B starts an entity",
    "strict": "strict IOB2 rule: an I without its B is no entity",
}
UNNAMED = "_"
FORMS = "O, B-TYPE, I-TYPE, or plain B and I"

Tags = Sequence[str | None]  # None: a word without a tag


class Entity(NamedTuple):
    """Words start to end, the last not included; seqeval's lists name the last one instead."""

    type: str
    start: int
    end: int


def entities(tags: Sequence[str], rule: str = "lenient") -> list[Entity]:
    """The entities of one sentence in their order."""
    check_choice("rule", rule, RULES)
    for place, tag in enumerate(tags, start=1):
        _check_tag(tag, f"word {place}")
    return [Entity(kind or UNNAMED, first, end) for kind, first, end in bio_tags.spans(tags, strict=rule == "strict")]


def _check_tag(tag: Any, where: str) -> None:
    if not isinstance(tag, str) or not bio_tags.is_tag(tag):
        raise InputError(f"{where}: tag {tag!r} is none of {FORMS}; write it in one of these forms")


def entity_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], rule: str = "lenient"
) -> dict[str, Score]:
    """precision, recall, f1 over all entities (micro), macro_f1, token_accuracy, n (sentences), and for each type
    precision:TYPE, recall:TYPE and f1:TYPE; the notes of the first four name the rule."""
    counted = _count(gold, predicted, rule)
    wanted, marked, hits = counted.wanted, counted.predicted, counted.hits
    types = sorted(wanted | marked)
    scores = ratios(hits.total(), wanted.total(), marked.total(), "any type", RULES[rule])
    each = {name: ratios(hits[name], wanted[name], marked[name], name) for name in types}
    f1s = [value for name in types if (value := each[name]["f1"].value) is not None]
    scores["macro_f1"] = Score(sum(f1s) / len(f1s), RULES[rule]) if f1s else scores["f1"]
    accuracy = Score(counted.right / counted.words) if counted.words else Score(None, "no words")
    scores |= {"token_accuracy": accuracy, "n": Score(float(len(gold)))}
    return scores | {f"{measure}:{name}": value for name in types for measure, value in each[name].items()}


def scores_by_type(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], rule: str = "lenient"
) -> dict[str, dict[str, Score]]:
    """precision, recall, f1, support and predicted (numbers of entities) of each type in gold or predicted tags."""
    counted = _count(gold, predicted, rule)
    return {
        name: type_scores(counted.hits[name], counted.wanted[name], counted.predicted[name], name)
        for name in sorted(counted.wanted | counted.predicted)
    }


def type_scores(hits: int, wanted: int, predicted: int, name: str) -> dict[str, Score]:
    """`ratios`, and support and predicted: how many were wanted and predicted."""
    counts = {"support": Score(float(wanted)), "predicted": Score(float(predicted))}
    return ratios(hits, wanted, predicted, name) | counts


class _Counts(NamedTuple):
    """Entities by type: in gold tags, in predicted tags, in both; words, and those with the same tag."""

    wanted: Counter[str]
    predicted: Counter[str]
    hits: Counter[str]
    words: int
    right: int


def _count(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], rule: str) -> _Counts:
    check_choice("rule", rule, RULES)
    if len(gold) != len(predicted):
        raise InputError(f"{len(predicted):,} predicted sentences for {len(gold):,}; give one for each, in order")
    counters = Counter[str](), Counter[str](), Counter[str]()
    words = right = 0
    for number, (row, other) in enumerate(zip(gold, predicted, strict=True), start=1):
        if len(row) != len(other):  # a tail cut off would make the score too high
            raise InputError(f"sentence {number:,} has {len(row)} words and {len(other)} tags; give each one")
        wanted, marked = (set(_entities_of(number, tags, rule)) for tags in (row, other))
        for counter, entities_of in zip(counters, (wanted, marked, wanted & marked), strict=True):
            counter.update(entity.type for entity in entities_of)
        words += len(row)
        right += sum(a == b for a, b in zip(row, other, strict=True))
    return _Counts(*counters, words, right)


def _entities_of(number: int, tags: Sequence[str], rule: str) -> list[Entity]:
    try:
        return entities(tags, rule)
    except InputError as error:
        raise InputError(f"sentence {number:,}, {error}") from None


def ratios(hits: float, wanted: float, predicted: float, name: str, note: str | None = None) -> dict[str, Score]:
    """precision, recall and f1 of hits among so many wanted and predicted; with the note where they are defined."""
    neither = f"no entity of {name}, and none was predicted"
    return {
        "precision": Score(hits / predicted, note) if predicted else Score(None, f"no entity of {name} was predicted"),
        "recall": Score(hits / wanted, note) if wanted else Score(None, f"no entity of {name}"),
        "f1": Score(2 * hits / (wanted + predicted), note) if wanted + predicted else Score(None, neither),
    }


def check_taggings(sentences: Sequence[Mapping[str, Tags]], predicted: Sequence[Tags] | None) -> None:
    """Raises InputError where taggings by annotators, and of the model, do not fit together; see `compare`.

    sentences: for each, annotator -> a tag for each word, or None. predicted: the model's, which has all tags.
    """
    if predicted is not None and len(sentences) != len(predicted):
        raise InputError(f"{len(predicted):,} predicted sentences for {len(sentences):,}; give one for each, in order")
    for number, sentence in enumerate(sentences, start=1):
        taggings = [(f"annotator {name}", tags, True) for name, tags in sentence.items()]
        if predicted is not None:
            taggings.insert(0, ("the prediction", predicted[number - 1], False))
        for name, tags, may_lack in taggings:
            first, first_tags, _ = taggings[0]
            if len(tags) != len(first_tags):
                counts = f"{len(first_tags)} tags of {first}, but {len(tags)} of {name}"
                raise InputError(f"sentence {number:,} has {counts}; give one for each word")
            for place, tag in enumerate(tags, start=1):
                if tag is not None or not may_lack:
                    _check_tag(tag, f"sentence {number:,}, word {place}, {name}")


def compare(first: Tags, second: Tags) -> tuple[int, int, int, int]:
    """Of two taggings of one sentence: entities of both, of the first, of the second; 1 where both tagged a word.

    By the lenient rule. Words that one side left without a tag are not compared; an entity ends there.
    """
    tagged = None  # all words, the usual case; each tagging is then read once, however many it is compared with
    if None in first or None in second:
        tagged = tuple(None not in pair for pair in zip(first, second, strict=True))
    a, b = _marks(tuple(first), tagged), _marks(tuple(second), tagged)
    return len(a & b), len(a), len(b), int(any(tagged) if tagged is not None else len(first) > 0)


@lru_cache(maxsize=1024)
def _marks(tags: tuple[str | None, ...], tagged: tuple[bool, ...] | None) -> frozenset[Entity]:
    """Entities of the runs of tagged words."""
    marks: set[Entity] = set()
    start = 0
    for is_tagged, group in groupby(tagged or (True,) * len(tags)):
        end = start + len(list(group))
        run = entities([str(tag) for tag in tags[start:end]]) if is_tagged else []
        marks.update(Entity(type_, start + first, start + last) for type_, first, last in run)
        start = end
    return frozenset(marks)
