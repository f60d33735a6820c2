"""What names of emoji say, and which people are held out."""

import itertools

import pytest

from tasks.captioning import emoji
from tasks.captioning.emoji import GENDERS, SKINS, Person


@pytest.mark.parametrize(("name", "said"), [
    ("woman pilot: dark skin tone", ("dark skin tone", "woman", "pilot")),
    ("pilot: medium-light skin tone", ("medium-light skin tone", "person", "pilot")),
    ("man: light skin tone, red hair", ("light skin tone", "man", "red hair")),
    ("person in manual wheelchair: dark skin tone, facing right", ("dark skin tone", "person", "in manual wheelchair")),
    ("pregnant woman", ("", "woman", "pregnant")),
    ("keycap: #", ("", "person", "keycap #")),
    ("", ("", "person", "")),
])  # fmt: skip
def test_what_a_name_says(name, said):
    assert emoji.person(name) == said


def test_each_role_has_one_skin_held_out_in_all_genders():
    """Whatever the order; roles without a skin or a gender are in no part."""
    roles = [f"role {i}" for i in range(10)]
    people = [Person(skin, gender, role) for skin, gender, role in itertools.product(SKINS, GENDERS, roles)]
    others = [Person("", "woman", "role 1"), Person(SKINS[0], "man", "prince")]
    parts = emoji.part_of([*others, *people])
    assert parts[:2] == [None, None]
    held = {person for person, part in zip(people, parts[2:], strict=True) if part == "held-out"}
    pairs = {(person.role, person.skin) for person in held}
    assert held == {Person(skin, gender, role) for role, skin in pairs for gender in GENDERS}
    assert sorted(role for role, _ in pairs) == roles
    assert {skin for _, skin in pairs} == set(SKINS)
    assert emoji.part_of(people[::-1]) == parts[:1:-1]


def test_attributes_are_right_by_themselves():
    people = [emoji.person("woman pilot: dark skin tone"), emoji.person("cook: light skin tone")]
    found = emoji.scores(people, ["man pilot: dark skin tone", "woman cook: dark skin tone"])
    assert {name: score.value for name, score in found.items()} == {"skin": 0.5, "gender": 0.0, "role": 1.0}
