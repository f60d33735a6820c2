"""Counts the lengths of examples in a local copy of SST-2 and MRPC, for bench/texts.py."""

import json
import pathlib

import numpy as np

from bench.texts import COUNTS, LONGEST
from bert.prediction import classification
from bert.tokenizer.backends import load_tokenizer
from tasks.classification import glue

_COLUMNS = {"sst2": ("sentence",), "mrpc": ("sentence1", "sentence2")}


def count(folder: str, vocabulary: str, out: pathlib.Path) -> dict[str, pathlib.Path]:
    """Writes the counts of each task's training part, as in `texts.COUNTS`; returns task -> file.

    Args:
      folder: contains the folders of the tasks. vocabulary: a model directory. out: folder for the files.
    """
    tokenizer = load_tokenizer(vocabulary)
    out.mkdir(parents=True, exist_ok=True)
    files = {}
    for name in COUNTS:
        rows = glue.read(name, folder, "train").rows
        encoded = classification.encode([tuple(row[c] for c in _COLUMNS[name]) for row in rows], tokenizer, LONGEST)
        counts = np.bincount(encoded.length_N)
        first = int(encoded.length_N.min())
        files[name] = out / f"{name}.json"
        files[name].write_text(json.dumps([first, counts[first:].tolist()]))
    return files
