"""docs/training_loop.md: its code runs, prints what the page shows, and what it saves answers as it did."""

import pathlib
import re
import shutil

import bert
from tests.docs.blocks import run_blocks

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "training_loop.md").read_text()


def test_code_prints_what_the_page_shows(tmp_path, monkeypatch):
    shutil.copytree(CHECKOUT / "tests" / "golden" / "tiny_bert", tmp_path / "runs" / "mine")
    monkeypatch.chdir(tmp_path)
    printed = run_blocks(PAGE)
    assert sum(bool(shown) for _, shown in printed) == 3
    for got, shown in printed:
        assert got == shown
    assert bert.load("runs/own").predict(["a good movie"])[0]["label"] == "good"


def test_links_lead_somewhere():
    targets = re.findall(r"\]\((.*?)\)", PAGE)
    assert targets
    for target in targets:
        assert (CHECKOUT / "docs" / target).exists(), target
