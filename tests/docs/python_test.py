"""The Python blocks of every page run, in order, and print what the page shows."""

import shutil

import numpy as np
import pytest

import bert
from bert.inference import LoadedModel
from bert.interop import sources
from bert.model.sentence_encoder import SentenceEncoder
from bert.prediction.bio_mrc import BioMrcOptions
from bert.prediction.classification import ClassificationOptions
from bert.prediction.tagging import TaggingOptions
from tests.docs.blocks import CHECKOUT, PAGES, blocks_of, run_blocks

TINY = CHECKOUT / "tests" / "golden" / "tiny_bert"
WITH_PYTHON = [page for page in PAGES if any(block.language == "python" for block in blocks_of(page.read_text()))]
# Page -> blocks that are compiled only, by a part of their text.
COMPILED_ONLY = {
    "weights.md": ("from peft", "import onnxruntime", "from jax import export"),  # weights_test.py, stablehlo_test.py
    "tracking.md": ("trackers.following",),  # needs mlflow; trackers are tested in tests/bert/training/
    "benchmarks.md": ("time.perf_counter",),  # measures speed on large arrays
}


def with_head(parts, labels, options) -> LoadedModel:
    """The tiny model with new heads and a task's settings."""
    model = LoadedModel(sources.read(TINY, fresh=parts, labels=labels))
    model.extra = dict(options.to_json())
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the models and files that the pages name."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(TINY, folder / "runs" / "mine")
    vectors = bert.load(TINY)
    vectors.sentences = SentenceEncoder()
    bert.save(vectors, folder / "all-MiniLM-like")
    classes, tags = ("pooler", "sequence_classifier"), ("token_classifier",)
    bert.save(with_head(classes, ("1", "5"), ClassificationOptions("class", ("review",), 64)), folder / "runs/reviews")
    bert.save(with_head(tags, ("B", "I", "O"), BioMrcOptions(max_length=64, window_step=16)), folder / "runs/reader")
    bert.save(
        with_head(tags, ("O", "B-PER", "I-PER"), TaggingOptions(max_length=64, window_step=16)), folder / "runs/tagger"
    )
    np.save(folder / "vectors.npy", vectors.embed(["a cat", "a dog", "a book"]))
    return folder


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_blocks_run_and_print_what_the_page_shows(page, folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    printed = run_blocks(page.read_text(), compiled_only=COMPILED_ONLY.get(page.name, ()))
    for got, shown in printed:
        assert got == shown or not shown
