"""Exports as tests read them, and hand-made ones that hold what is hard: emoji, CR LF, Chinese, combining marks."""

import json

from tasks.annotations.annotated_texts import AnnotationSettings
from tasks.annotations.tools import read_annotated
from tests.tasks.one_line import message_of

HARD = "😀 Anna\r\nsaw Jose\u0301 in 東京 👩🏽\u200d🚒 (Paris)."
NAMES = {"Anna": "PER", "Jose\u0301": "PER", "東京": "LOC", "Paris": "LOC"}
SPANS = [(HARD.index(name), HARD.index(name) + len(name), label) for name, label in NAMES.items()]


def utf16(offset, text=HARD):
    """An offset in UTF-16 units."""
    return len(text[:offset].encode("utf-16-le")) // 2


def lines(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read(path, **settings):
    return read_annotated(str(path), AnnotationSettings(**settings))


def refused(path, **settings):
    return message_of(lambda: read(path, **settings))


def spans(file):
    """Of each text {annotator: [(start, end, label), ...]}."""
    return [{name: [tuple(span) for span in found] for name, found in text.annotations} for text in file.texts]


def said(file):
    return "\n".join(file.notes)
