"""Settings that are declared as fields of a dataclass: their defaults in a config, back again, and their comments."""

import dataclasses

import pytest
from ml_collections import ConfigDict

from bert import config_fields


@dataclasses.dataclass(frozen=True)
class Base:
    length: int  # tokens
    # Share of tokens
    # that are masked.
    rate: float = 0.15
    mode: str = "a#b"


@dataclasses.dataclass(frozen=True)
class Derived(Base):
    rate: float = 0.5  # another default
    cased: bool | None = None  # not set: as the vocabulary


@pytest.fixture(autouse=True)
def nothing_declared():
    config_fields.declared.clear()


def test_fields_become_settings_with_their_defaults_and_types():
    """A field without a default is left to the config file; None is a placeholder of the annotated type."""
    config = ConfigDict()
    config_fields.add(config, Derived)
    config_fields.add(config, Derived, "rate", "mode", section="part", without=("mode",))
    config_fields.add(config, Base, section="open", unset=("rate",))
    assert config_fields.flatten(config) == {
        "cased": None, "mode": "a#b", "open.mode": "a#b", "open.rate": None, "part.rate": 0.5, "rate": 0.5,
    }  # fmt: skip
    assert (config.get_type("cased"), config.open.get_type("rate")) == (bool, float)
    with pytest.raises(TypeError):
        config.cased = "yes"


def test_comments_are_those_of_the_fields_at_the_class_that_declares_them():
    """Above the field and behind it; of a field that a subclass declares again, the subclass's."""
    config = ConfigDict()
    config_fields.add(config, Base)
    config_fields.add(config, Derived, section="part")
    assert list(config_fields.declared.values()) == [
        {"rate": "Share of tokens that are masked.", "mode": "", "part.mode": ""},
        {"part.rate": "another default", "part.cased": "not set: as the vocabulary"},
    ]


def test_a_part_is_taken_away_with_its_comments():
    """So --help shows those of the fields that take its place."""
    config = ConfigDict()
    config_fields.add(config, Derived)
    config_fields.add(config, Base, section="part")
    config_fields.remove(config, "part")
    assert "part" not in config
    assert not [name for texts in config_fields.declared.values() for name in texts if name.startswith("part.")]
    assert any("rate" in texts for texts in config_fields.declared.values())


def test_the_dataclass_is_built_from_settings_and_other_values():
    config = ConfigDict({"rate": 0.25, "length": 8, "other": 1})
    assert config_fields.build(Base, config, length=16) == Base(16, 0.25)
