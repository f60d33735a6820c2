"""Reads texts with labelled spans, as annotation tools export them, as tagged sentences.

A text is cut into words as prediction cuts it (bert/words.py), and its spans become tags B, I and O. A span that begins
or ends inside of a word is widened to the word. Of spans of one annotator that share a word, the longest counts, of
equal ones the first. The report counts both.
"""

from collections.abc import Sequence

import numpy as np

from bert import config_fields, words
from tasks.annotations.annotated_texts import AnnotationSettings, LabelledSpan
from tasks.annotations.tools import read_annotated
from tasks.files.reports import Tally
from tasks.tagging.tag_schemes import TagFile, TaggedSentence, TagSettings


def read_tagged_texts(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The texts of an export, each as one sentence."""
    file = read_annotated(path, config_fields.build(AnnotationSettings, vars(settings)))
    rows, tally = [], Tally()
    for text in file.texts:
        places = words.places_of_words(text.text)
        annotations = [] if labelled == "no" else text.annotations
        tags = tuple((name, tags_of(spans, places, text.place, tally)) for name, spans in annotations)
        cut = tuple(text.text[start:end] for start, end in places)
        rows.append(
            TaggedSentence(cut, tags, text.place, text.document, text.id, text.text, tuple(places), text.origin)
        )
    notes = [f"{path}: read as an export of {file.tool}"]
    if labelled != "no":
        by_annotator = [spans for text in file.texts for _, spans in text.annotations]
        people = len(file.annotators) or 1
        notes[0] += f": {sum(map(len, by_annotator)):,} spans by {people:,} annotator{'s' * (people > 1)}"
        notes += [*file.notes, *(f"{path}: {note}" for note in tally.notes())]
    return TagFile(rows, notes, file.annotators)


def tags_of(
    spans: Sequence[LabelledSpan], places: Sequence[tuple[int, int]], place: str, tally: Tally
) -> tuple[str, ...]:
    """The tags B-LABEL, I-LABEL and O of the words of a text, in IOB2.

    Args:
      places: [start, end) of each word.
      place: of the text, for what ``tally`` counts.
    """
    starts, ends = (np.array([bounds[side] for bounds in places], np.int64) for side in (0, 1))
    tags = ["O"] * len(places)
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        first = int(np.searchsorted(ends, span.start, side="right"))
        stop = int(np.searchsorted(starts, span.end, side="left"))
        if first >= stop:
            tally.add("spans without a word, dropped", place)
        elif any(tag != "O" for tag in tags[first:stop]):
            tally.add("spans that share a word with a longer or an earlier one, dropped", place)
        else:
            if starts[first] < span.start or ends[stop - 1] > span.end:
                tally.add("spans that begin or end inside of a word, widened to it", place)
            tags[first:stop] = [f"B-{span.label}", *[f"I-{span.label}"] * (stop - first - 1)]
    return tuple(tags)
