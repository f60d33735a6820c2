"""The page of what captions read: each word beside the picture, bright where the model looked, as one HTML file.

Python puts pictures, pieces and weights into the template, which caption_page.js draws. Weights are base64 of uint16,
little-endian, 65,535 for 1; pictures base64 of bytes, red, green and blue. Axes: A map, U piece, X row, Y column.

Source: Xu et al. 2015, figure 2.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bert.pages import template
from bert.prediction import captioning, source_attention
from bert.prediction.captioning import CaptioningOptions
from bert.prediction.scores import Scorer

PICTURES = 100  # at most
_AT_ONCE = 8  # pictures computed before it is seen whether there is room for more


def of_captions(
    scorer: Scorer,
    options: CaptioningOptions,
    pictures: Sequence[np.ndarray],
    captions: Sequence[str],
    names: Sequence[str],
) -> str:
    """The page on the first pictures, as many as fit into `template.LIMIT`, at most `PICTURES`.

    Raises InputError for a model whose words attend to no cells.
    """
    config: Any = scorer.config
    heads = source_attention.heads_of(config)
    grid = {"rows": config.grid[0], "columns": config.grid[1], "height": config.height, "width": config.width}
    data = {"model": template.name_of(scorer.source), "heads": heads, "layers": 0, "total": len(pictures)} | grid
    shown = list[dict[str, Any]]()
    room = template.LIMIT - len(_filled(data | {"pictures": shown}).encode())
    for first in range(0, min(len(pictures), PICTURES), _AT_ONCE):
        some = slice(first, min(first + _AT_ONCE, PICTURES))
        read_N = captioning.attention(scorer, pictures[some], captions[some], options)
        for name, picture, read in zip(names[some], pictures[some], read_N, strict=False):
            data["layers"] = len(read.weights) // heads
            values = {"name": name, "target": read.target, "words": read.target_words}
            weights = template.encoded((read.weights * 65535).round(), "<u2")
            entry = values | {"weights": weights, "pixels": _pixels(picture)}
            room -= len(template.island(entry).encode()) + 2
            if room < 0:
                return _filled(data | {"pictures": shown})
            shown.append(entry)
    return _filled(data | {"pictures": shown})


def _pixels(picture_XYC: np.ndarray) -> str:
    """Base64 of [X, Y, 3] bytes, scaled to the whole range unless they are bytes; "" for what is no picture."""
    if picture_XYC.shape[-1] not in (1, 3):
        return ""
    if picture_XYC.dtype != np.uint8:
        low, high = float(picture_XYC.min()), float(picture_XYC.max())
        picture_XYC = (picture_XYC - low) / ((high - low) or 1.0) * 255
    return template.encoded(np.broadcast_to(picture_XYC, (*picture_XYC.shape[:2], 3)).round(), "u1")


def _filled(data: dict[str, Any]) -> str:
    parts = {
        "STYLE": template.read(__package__, "page.css", "caption_page.css"),
        "PAGE": template.read(__package__, "elements.js", "caption_page.js"),
        "DATA": template.island(data),
    }
    return template.filled(__package__, "caption_page.html", parts)
