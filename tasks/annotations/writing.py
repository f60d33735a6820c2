"""How spans are written for a tool: in which unit, under which names, and what is said about it."""

import dataclasses
from collections.abc import Sequence

from absl import logging

from tasks.annotations.annotated_texts import LabelledSpan, PredictedText
from tasks.annotations.offsets import NAMES, differ, offsets_of


@dataclasses.dataclass(frozen=True)
class Writing:
    """How predictions are written.

    tool: its name. unit: of offsets, for texts that are not from this tool.
    controls: Label Studio's names of the tags with the labels and the text, where no text tells.
    model: the name of the model.
    """

    tool: str
    unit: str
    controls: tuple[str, str]
    model: str

    def unit_of(self, text: PredictedText) -> str:
        """The unit of a text's offsets: the one in which they were read, where the text is from this tool."""
        return text.origin.offsets if text.origin and text.origin.tool == self.tool else self.unit

    def bounds(self, text: PredictedText, span: LabelledSpan) -> tuple[int, int]:
        """[start, end) of a span in the unit of its text."""
        of_place = offsets_of(text.text, self.unit_of(text)).of_place
        return of_place[span.start], of_place[span.end]

    def warn(self, texts: Sequence[PredictedText]) -> None:
        """Says which unit offsets count where it makes a difference."""
        for text in texts:
            unit = self.unit_of(text)
            if text.spans and differ(text.text, unit):
                message = "offsets are written in %s, as %s counts them; --offsets sets another unit"
                logging.warning(message, NAMES[unit], self.tool)
                return
