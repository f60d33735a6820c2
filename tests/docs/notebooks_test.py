"""The notebooks of docs/notebooks/: run whole, as scripts, with small settings in place of theirs; and as pages."""

import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

from docs.site import notebooks
from tests.launch.conftest import WORDS

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "notebooks"
TINY = FOLDER.parents[1] / "tests" / "golden" / "tiny_bert"


def run(name: str, place: pathlib.Path, /, **settings: object) -> str:
    """What a notebook prints, with other values after its cell of settings, as papermill puts them there.

    A warning is an error, in the notebook and in the commands that it starts.
    """
    before, cell, after = re.split(r"(^# %% tags=\[\"parameters\"\]\n.*?)(?=^# %%)", (FOLDER / name).read_text(),
                                   maxsplit=1, flags=re.DOTALL | re.MULTILINE)  # fmt: skip
    assert all(re.search(rf"^([a-z]+, )?{setting}\b.* = ", cell, re.MULTILINE) for setting in settings)
    own = "".join(f"{setting} = {value!r}\n" for setting, value in settings.items())
    (place / name).write_text(f"{before}{cell}\n# %% the settings of a test\n{own}\n{after}")
    flags = re.sub(r"\S*device_count=\d+", "", os.environ.get("XLA_FLAGS", ""))  # one device
    environment = os.environ | {
        "XLA_FLAGS": flags,
        "PYTHONPATH": str(FOLDER.parents[1]),
        "PYTHONWARNINGS": "error",
        "XDG_CACHE_HOME": str(place),
    }
    done = subprocess.run([sys.executable, name], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    # The tiny vocabulary spells most words letter by letter.
    said = re.sub(r".*texts are longer than max_length, .* and were cut.*", "", done.stderr)
    assert "warning" not in said.lower(), said
    assert not re.search(r"\b(nan|inf|None|undefined)\b", done.stdout), done.stdout
    return done.stdout


def test_a_notebook_becomes_a_page(tmp_path):
    """Text as text, code as blocks, the other cells' marks gone; the two of ours have all their code."""
    (tmp_path / "a.py").write_text("# %% [markdown]\n# # Title\n#\n# - [b](c.md)\n\n# %% tags=['x']\nd = 1  # e\n")
    title, note, text, *code = notebooks.page(tmp_path / "a.py").split("\n\n")
    assert (title, text) == ("# Title", "- [b](c.md)")
    assert "`python a.py`" in note
    assert code == ["```python\nd = 1  # e\n```\n"]
    for file in FOLDER.glob("*.py"):
        blocks = "".join(re.findall(r"```python\n(.*?)```", notebooks.page(file), re.DOTALL))
        lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
        assert [line for line in blocks.splitlines() if line and not line.startswith("#")] == lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("notebooks")


@pytest.mark.slow
def test_pretrain_and_look_inside(folder):
    rng = random.Random(0)
    sentences = [f"the {rng.choice(WORDS)} the {rng.choice(WORDS)} {rng.choice(WORDS)} ." for _ in range(800)]
    documents = "\n\n".join("\n".join(sentences[i : i + 8]) for i in range(0, 800, 8))
    (folder / "texts.txt").write_text(documents)
    said = run(
        "pretrain_and_look_inside.py",
        folder,
        corpus="texts.txt",
        folder="out",
        steps=10,
        sentences=["the keeper the [MASK] lamp ."],
        texts=["the ship .", "the wind .", "the sea the storm ."],
        query="the ship the ship .",
        more=["--config.batch_size=8", "--config.max_length=32", "--config.allocator=system"],
    )
    assert "  before  " in said
    assert "  after   " in said
    assert "loss by step" in said
    for total in re.findall(r"^  (\S+ 0\.\d+, .*); all others (0\.\d+)$", said, re.MULTILINE):
        assert sum(map(float, re.findall(r"0\.\d+", ", ".join(total)))) == pytest.approx(1, abs=3e-3)
    lengths = dict(re.findall(r"^([a-z_]+) +(\d+\.\d+)$", said, re.MULTILINE))
    assert {"input", "heads", "attention_norm", "output"} <= lengths.keys()
    found = re.findall(r"^(-?\d\.\d+)  (.*)$", said, re.MULTILINE)
    assert found[0][1] == "the ship ."
    assert sorted(found, reverse=True) == found
    assert "<script" in (folder / "out" / "attention.html").read_text()


@pytest.mark.slow
def test_heads_as_matrices(folder):
    """Weights through the merged matrices are the model's; fewer columns are worse."""
    said = run("heads_as_matrices.py", folder, source=str(TINY), text="the cat sat on the mat .", layer=1, head=2)
    assert "2 layers of 4 heads, 32 x 32 numbers each" in said
    (difference, without) = re.findall(r"weight: (\S+); without u: (\S+)", said)[0]
    assert float(difference) < 1e-5 < float(without)
    errors = [float(error) for error in re.findall(r"columns: largest difference of a weight (\S+)", said)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-5 < errors[0]
    shares = [float(share) for share in re.findall(r" *(0\.\d\d) \([+-]", said)]
    assert len(shares) == 8


@pytest.mark.slow
def test_own_csv_to_model(folder):
    """With the table that it makes itself; the exports give the probabilities of the model."""
    said = run("own_csv_to_model.py", folder, start=str(TINY), folder="own", epochs=1, max_length=32)
    sizes = {
        name: int(size) for size, name in re.findall(r"^ +(\d+)  (test|validation|new|train)$", said, re.MULTILINE)
    }
    (whole,) = re.findall(r"^(\d+) rows with different texts", said, re.MULTILINE)
    assert sum(sizes.values()) == int(whole)
    assert re.search(r"^ +\d+  \w+ taken for \w+$", said, re.MULTILINE)
    unsure = [float(nats) for nats in re.findall(r"^(\d\.\d+) nats  ", said, re.MULTILINE)]
    assert unsure == sorted(unsure, reverse=True)
    assert len(unsure) == 5
    for name, part in (("validation", sizes["validation"]), ("test", sizes["test"])):
        assert re.search(rf"^{name}: \d+ of {part} rows get an answer; right: [01]\.\d+$", said, re.MULTILINE)
    label, probability = re.findall(r"^(\w+) (0\.\d+) \(true: ", said, re.MULTILINE)[0]
    assert re.search(rf"^{label} {probability}$", said, re.MULTILINE), "onnxruntime gives the same"
    assert "README.md" in said
    assert (folder / "own" / "shipped" / "README.md").read_text()[:1000] in said
