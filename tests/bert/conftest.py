"""What the tests of this folder share: a small vocabulary, small texts, and changed copies of the tiny model."""

import json
import pathlib
import shutil

import pytest
import safetensors.numpy

import bert
from tests.bert.builders import SPECIAL, WORDS

TINY = pathlib.Path(__file__).resolve().parents[1] / "golden" / "tiny_bert"
# Look-alikes are written as escapes: composed and decomposed characters are different entries.
ENTRIES = """
    [PAD] [UNK] [CLS] [SEP] [MASK] hello world ! ' , . [ ] mask un ##aff ##able naive na\u00efve cafe one two line note
    book notebook \u4e2d \u56fd han ##gul \uac00 \u1100\u1161 A a ##b lush ##i a\u0301 \u00e1 ##\u0301 new york ##s s
    don t E e ##1 hacia hac\u00eda 9 / 7 1992
"""


@pytest.fixture(scope="session")
def entries() -> list[str]:
    """55 entries with cased and uncased, composed and decomposed forms side by side; "hello" has id 5."""
    return ENTRIES.split()


@pytest.fixture
def write(tmp_path):
    """write("a/b.txt", content) -> path of a new file below the test's folder; texts become UTF-8 as they are."""

    def one(name: str, content: str | bytes):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return one


@pytest.fixture
def vocab(write):
    return str(write("vocab/vocab.txt", "\n".join([*SPECIAL, *WORDS, "."])))


@pytest.fixture
def variant(tmp_path):
    """variant(drop=prefixes, vocabulary=entries, tensors=changed, **config): the tiny model, changed, as loaded."""

    def make(*, drop=(), vocabulary=None, tensors=None, **config):
        folder = tmp_path / "model"
        shutil.copytree(TINY, folder)
        found = safetensors.numpy.load_file(folder / "model.safetensors") | (tensors or {})
        kept = {name: tensor for name, tensor in found.items() if not name.startswith(tuple(drop) or "-")}
        safetensors.numpy.save_file(kept, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | config))
        if vocabulary is not None:
            (folder / "vocab.txt").write_text("\n".join(vocabulary))
        return bert.load(folder)

    return make
