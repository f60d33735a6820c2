"""Lengths counted in local files."""

import numpy as np

from bench import lengths
from bench.texts import Texts
from tests.launch.review_table import TINY


def test_lengths_are_counted_with_their_special_tokens(tmp_path):
    """One sentence of two pieces four times, one of six once; pairs with three special tokens."""
    sentences = ["sentence\tlabel", *["the the\t1"] * 4, "the the the the the the\t0"]
    pairs = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t1\t2\tthe\tthe the"]
    for folder, name, rows in (("SST-2", "train.tsv", sentences), ("MRPC", "msr_paraphrase_train.txt", pairs)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("\n".join(rows) + "\n")
    files = lengths.count(str(tmp_path), str(TINY), tmp_path / "out")
    assert files["sst2"].read_text() == "[4, [4, 0, 0, 0, 1]]"
    assert np.unique(Texts("finetune", "tiny", str(files["sst2"]), 64).length_N, return_counts=True)[1][0] > 45
    assert Texts("finetune", "tiny", str(files["mrpc"]), 3).length_N.tolist() == [6, 6, 6]
