"""People among emoji: their skin, gender and role, read from English Unicode names, and combinations held out.

A name such as "woman pilot: dark skin tone" is made of these. Roles that have a picture for each skin and gender are
divided into two parts: each role has one skin, in all genders, in the part "held-out" alone, so that no twin of another
gender is trained on.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks.metrics.score import Score

PARTS = ("train", "held-out")
SKINS = tuple(f"{name} skin tone" for name in ("light", "medium-light", "medium", "medium-dark", "dark"))
GENDERS = ("man", "woman", "person")  # without such a word: person
NAMES = ("skin", "gender", "role")


class Person(NamedTuple):
    """What a name says; "" for a skin or a role that it does not say. A role is all else but the direction."""

    skin: str
    gender: str
    role: str


def person(name: str) -> Person:
    """The person with this name: "woman pilot: dark skin tone", or "man: light skin tone, red hair"."""
    base, _, rest = name.partition(": ")
    parts, words = rest.split(", "), base.split()
    skin = ", ".join(part for part in parts if part.endswith(" skin tone"))
    role = [word for word in words if word not in GENDERS]
    role += [part for part in parts if part not in ("facing right", *SKINS)]
    return Person(skin, next((word for word in words if word in GENDERS), "person"), " ".join(role).strip())


def part_of(people: Sequence[Person]) -> list[str | None]:
    """The part of each person; None where the role lacks a skin or a gender."""
    known = set(people)
    roles = sorted({person.role for person in people})
    whole = [role for role in roles if known >= {Person(skin, gender, role) for skin in SKINS for gender in GENDERS}]
    held = {(role, SKINS[i % len(SKINS)]) for i, role in enumerate(whole)}
    is_known = lambda person: person.role in whole and person.skin in SKINS  # noqa: E731
    return [PARTS[(person.role, person.skin) in held] if is_known(person) else None for person in people]


def scores(people: Sequence[Person], texts: Sequence[str]) -> dict[str, Score]:
    """The share of the texts, of each attribute, that say the same as the picture's name."""
    same_NA = np.equal(np.array(people, object), np.array([person(text) for text in texts], object))
    return {name: Score(float(share)) for name, share in zip(NAMES, same_NA.mean(0), strict=True)}
