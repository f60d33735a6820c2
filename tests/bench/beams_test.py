"""Translations by beam search that are timed: both sides have to write the same."""

import json

import pytest

from bench import beams
from bench.beams import Beams


def test_other_translations_than_ours_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(beams, "WRITTEN", tmp_path / "written.json")
    ours = [f"w{i}" for i in range(200)]
    beams.WRITTEN.write_text(json.dumps(ours))
    assert Beams(count=200).check(["w7", *ours[1:]]) == 0.995
    with pytest.raises(RuntimeError, match=r"98\.5% .* equal"):
        Beams(count=200).check(["w7", "w7", "w7", *ours[3:]])
