"""Which entities are right, missed, spurious, or have another type or other borders; and which types are confused.

A word without a gold tag is in no entity of either side. Each entity is in one pair at most: first those with the same
words and type, then those with the same words, then those that overlap, in their order.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from bert import bio_tags
from tasks.metrics.entity_metrics import Entity, entities

KINDS = ("right", "wrong label", "wrong borders", "wrong label and borders", "missed", "spurious")
NONE = "(none)"  # of the other side, in the confusion of types


class EntityPair(NamedTuple):
    """An entity of one side, or of both; ``kind``: of `KINDS`."""

    kind: str
    gold: Entity | None
    predicted: Entity | None


def pairs(gold_tags: Sequence[str | None], predicted_tags: Sequence[str]) -> list[EntityPair]:
    """The entities of a sentence, in the order of their first words."""
    gold = entities([tag or "O" for tag in gold_tags])
    hidden = [tag if true_tag is not None else "O" for true_tag, tag in zip(gold_tags, predicted_tags, strict=True)]
    predicted = entities(bio_tags.repaired(hidden))
    matched: list[EntityPair] = []
    for rule in (_same, _same_words, _overlapping):
        for entity in list(gold):
            other = next((other for other in predicted if rule(entity, other)), None)
            if other is not None:
                matched.append(EntityPair(_kind(entity, other), entity, other))
                gold.remove(entity)
                predicted.remove(other)
    matched += [EntityPair("missed", entity, None) for entity in gold]
    matched += [EntityPair("spurious", None, entity) for entity in predicted]
    return sorted(matched, key=lambda pair: min(entity.start for entity in pair[1:] if entity is not None))


def counts(pairs_N: Sequence[Sequence[EntityPair]]) -> dict[str, int]:
    """How many pairs are of each kind."""
    counted = Counter(pair.kind for pairs in pairs_N for pair in pairs)
    return {kind: counted[kind] for kind in KINDS}


def confusion(pairs_N: Sequence[Sequence[EntityPair]]) -> dict[str, Any]:
    """ "labels": the types and `NONE`; "counts": pairs by true and predicted type, whatever their borders."""
    cells = Counter(
        (pair.gold.type if pair.gold else NONE, pair.predicted.type if pair.predicted else NONE)
        for pairs in pairs_N
        for pair in pairs
    )
    labels = [*sorted({name for cell in cells for name in cell} - {NONE}), NONE]
    return {"labels": labels, "counts": [[cells[truth, predicted] for predicted in labels] for truth in labels]}


def _same(one: Entity, other: Entity) -> bool:
    return one == other


def _same_words(one: Entity, other: Entity) -> bool:
    return one[1:] == other[1:]


def _overlapping(one: Entity, other: Entity) -> bool:
    return one.start < other.end and other.start < one.end


def _kind(one: Entity, other: Entity) -> str:
    wrong = [name for name, same in (("label", one.type == other.type), ("borders", one[1:] == other[1:])) if not same]
    return f"wrong {' and '.join(wrong)}" if wrong else "right"
