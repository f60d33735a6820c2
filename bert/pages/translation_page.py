"""The page of a translation's attention: source words against those of the translation, as one HTML file.

Python puts pieces and weights into the template, which translation_page.js draws. Weights are base64 of uint16,
little-endian, 65,535 for 1. Axes: A map, U target position, S source position.

Source: Bahdanau et al. 2015, figure 3.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from bert.pages import template
from bert.prediction import source_attention, translation
from bert.prediction.scores import Scorer
from bert.prediction.source_attention import SourceAttention

SENTENCES = 100  # at most
_AT_ONCE = 8  # sentences computed before it is seen whether there is room for more


def of_texts(scorer: Scorer, sources: Sequence[str], targets: Sequence[str]) -> str:
    """The page on the first pairs, as many as fit into `template.LIMIT`, at most `SENTENCES`.

    Pairs that are longer than the model's positions are left out. Raises InputError for a model without a decoder.
    """
    heads = source_attention.heads_of(scorer.config)
    data = {"model": template.name_of(scorer.source), "heads": heads, "layers": 0, "total": len(sources)}
    sentences = list[dict[str, Any]]()
    room = template.LIMIT - len(_filled(data | {"sentences": sentences}).encode())
    for i, read in _read(scorer, sources, targets):
        weights = template.encoded((read.weights * 65535).round(), "<u2")
        sentence = read._asdict() | {"number": i + 1, "text": sources[i], "weights": weights}
        room -= len(template.island(sentence).encode()) + 2
        if room < 0:
            break
        data["layers"] = len(read.weights) // heads
        sentences.append(sentence)
    return _filled(data | {"sentences": sentences})


def _read(scorer: Scorer, sources: Sequence[str], targets: Sequence[str]) -> Iterator[tuple[int, SourceAttention]]:
    length_N = translation.encode_pairs(scorer.tokenizer, sources[:SENTENCES], targets[:SENTENCES]).length_N
    fitting = [i for i, length in enumerate(length_N) if length <= scorer.config.max_length]
    for first in range(0, len(fitting), _AT_ONCE):
        some = fitting[first : first + _AT_ONCE]
        sides = ([texts[i] for i in some] for texts in (sources, targets))
        yield from zip(some, source_attention.of_texts(scorer, *sides), strict=True)


def _filled(data: dict[str, Any]) -> str:
    parts = {
        "STYLE": template.read(__package__, "page.css", "translation_page.css"),
        "PAGE": template.read(__package__, "elements.js", "translation_page.js"),
        "DATA": template.island(data),
    }
    return template.filled(__package__, "translation_page.html", parts)
