"""Selects annotators: the names to keep, separated by commas, or the names to leave out, each after a "-"."""

import dataclasses

from bert.errors import InputError
from tasks.files.records import comma_names

SINGLE = "1"  # who annotated a file that names no annotator


@dataclasses.dataclass(frozen=True)
class AnnotatorChoice:
    """Whose votes are kept: these names alone, or (``without``) all but these; all where there are no names."""

    names: frozenset[str]
    without: bool

    def __contains__(self, annotator: object) -> bool:
        return not self.names or (annotator in self.names) != self.without


def choice_of(setting: str) -> AnnotatorChoice:
    """What the setting says."""
    parts = comma_names(setting)
    without = {part.startswith("-") for part in parts}
    if len(without) > 1:
        raise InputError(f"annotators {setting!r}: name those to keep, or those to leave out with a - each, not both")
    return AnnotatorChoice(frozenset(part.removeprefix("-") for part in parts), True in without)
