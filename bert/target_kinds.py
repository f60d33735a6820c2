"""What a classifier predicts for a text: one class, several labels at once, or a number."""

from typing import Literal

Kind = Literal["class", "classes", "number"]
KINDS: tuple[Kind, ...] = ("class", "classes", "number")
