"""Scoring a pretrained model on text: the run's own held-out scores, and sentences one by one."""

import json
import math
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.store.reader import Store
from launch import runtime, score
from tests.launch.tiny_pretraining import TINY, run

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = CHECKOUT / "tests" / "golden"
pytestmark = pytest.mark.usefixtures("one_device")


@pytest.fixture(scope="module")
def trained(prepared, tmp_path_factory) -> pathlib.Path:
    """A run of two steps, and beside it its held-out documents as text."""
    folder = tmp_path_factory.mktemp("score")
    run(*TINY, f"--config.data={prepared}", f"--workdir={folder / 'run'}", "--config.total_steps=2",
        "--config.examples.mask_share=0.5", "--config.seed=5")  # fmt: skip
    store = Store.open(prepared, "validation")
    (shard,), vocab = store.shards, store.tokenizer.vocab
    text, start = "", 0
    for end in shard.sentence_ends.tolist():
        text += " ".join(vocab[i] for i in shard.tokens[start:end]) + "\n" * (1 + (end in shard.document_ends))
        start = end
    (folder / "held.txt").write_text(text)
    return folder / "run"


def scored(*words) -> None:
    score.run(["score", *map(str, words)])


def test_scores_of_the_held_out_text_are_those_of_the_run(trained, tmp_path, capsys):
    """The same masks, pairs and sums: with the settings that the run has; with other masks others, near by."""
    text = trained.parent / "held.txt"
    scored(f"--model={trained}", f"--data={text}", f"--out={tmp_path / 'a.json'}")
    values = json.loads((tmp_path / "a.json").read_text())
    log = map(json.loads, (trained / "metrics.jsonl").read_text().splitlines())
    logged = [line for line in log if line["split"] == "validation"][-1]
    for name in ("loss", "mlm_loss", "mlm_perplexity", "mlm_accuracy", "nsp_loss", "nsp_accuracy"):
        assert values["scores"][name] == pytest.approx(logged[name], rel=1e-5), name
    assert (values["masks"]["seed"], values["masks"]["mask_share"], values["masks"]["max_length"]) == (5, 0.5, 32)
    shown = capsys.readouterr().out
    assert "mask_share 0.5" in shown
    assert f"{values['scores']['mlm_loss']:.4f}" in shown
    scored(f"--model={trained}", f"--data={text}", f"--out={tmp_path / 'b.json'}", "--seed=6", "--batch_size=5")
    other = json.loads((tmp_path / "b.json").read_text())["scores"]["mlm_loss"]
    assert other != values["scores"]["mlm_loss"]
    assert other == pytest.approx(values["scores"]["mlm_loss"], rel=0.1)


def test_each_sentence_has_its_place_and_its_pseudo_log_likelihood(tmp_path, capsys, monkeypatch):
    caches: list[pathlib.Path] = []
    monkeypatch.setattr(runtime, "keep_programs", caches.append)
    (tmp_path / "a.txt").write_text("the cat sat on the mat .\nmary ran .\n\n\u200b\nmary ran .\n")
    out, table = tmp_path / "sentences.jsonl", tmp_path / "scores.json"
    words = (f"--model={GOLDEN / 'tiny_bert'}", f"--data={tmp_path / 'a.txt'}", "--sentences=lines")
    scored(*words, f"--per_sentence={out}", f"--out={table}")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    places = [f"{tmp_path / 'a.txt'}:{line}, sentence {number}" for line, number in ((1, 1), (1, 2), (4, 2))]
    assert [row["place"] for row in rows] == places
    assert [(row["text"], row["tokens"]) for row in rows[1:]] == [("mary ran .", 3)] * 2
    assert rows[1]["pll"] == pytest.approx(rows[2]["pll"])
    assert rows[0]["pll"] < rows[1]["pll"] < 0
    total, pseudo = sum(row["pll"] for row in rows), json.loads(table.read_text())["pseudo"]
    assert pseudo["n_tokens"] == 13
    assert pseudo["pseudo_perplexity"] == pytest.approx(math.exp(-total / 13))
    assert pseudo["pll_per_sentence"] == pytest.approx(total / 3)
    assert caches == [runtime.user_cache()]
    assert "pseudo_perplexity" in capsys.readouterr().out


def test_a_model_without_pairs_or_without_masked_words(tmp_path):
    """The first is scored on masked words alone; the second is refused, as are rows that are too long."""
    tiny = bert.load(GOLDEN / "tiny_bert")
    alone = {"encoder": tiny.params["encoder"], "head": {"mlm": tiny.params["head"]["mlm"]}}
    bert.save(bert.inference.from_params(tiny.config, alone, tiny.tokenizer), tmp_path / "mlm")
    (tmp_path / "a.txt").write_text("the cat sat on the mat .\nmary ran .\n")
    scored(f"--model={tmp_path / 'mlm'}", f"--data={tmp_path / 'a.txt'}", f"--out={tmp_path / 'a.json'}")
    scores = json.loads((tmp_path / "a.json").read_text())["scores"]
    assert "nsp_loss" not in scores
    assert scores["loss"] == scores["mlm_loss"] > 0
    assert np.isclose(scores["mlm_perplexity"], math.exp(scores["mlm_loss"]))
    with pytest.raises(InputError, match=r"tiny_qa: has no mlm head .*span"):
        scored(f"--model={GOLDEN / 'tiny_qa'}", f"--data={tmp_path / 'a.txt'}")
    with pytest.raises(InputError, match=r"--max_length=65: .*64 positions"):
        scored(f"--model={GOLDEN / 'tiny_bert'}", f"--data={tmp_path / 'a.txt'}", "--max_length=65")
    with pytest.raises(InputError, match=r"--out=.*a\.txt: is the input"):
        scored(f"--model={tmp_path / 'mlm'}", f"--data={tmp_path}/*.txt", f"--out={tmp_path / 'a.txt'}")
    with pytest.raises(InputError, match=r"--seed=-1: .*at least 0"):
        scored(f"--model={GOLDEN / 'tiny_bert'}", f"--data={tmp_path / 'a.txt'}", "--seed=-1")


def test_two_outputs_are_two_files_and_standard_output_holds_nothing_else(tmp_path, capfd):
    (tmp_path / "a.txt").write_text("mary ran .\n")
    out = tmp_path / "a.jsonl"
    words = (f"--model={GOLDEN / 'tiny_bert'}", f"--data={tmp_path / 'a.txt'}", f"--per_sentence={out}")
    with pytest.raises(InputError, match=r"--per_sentence=.*a\.jsonl: .*--out"):
        scored(*words, f"--out={tmp_path}/./a.jsonl")
    capfd.readouterr()
    scored(*words, "--out=/dev/stdout")
    assert json.loads(capfd.readouterr().out)["pseudo"]["n_sentences"] == len(out.read_text().splitlines()) == 1


def test_as_a_person_runs_it(tmp_path):
    command = [sys.executable, "-m", "launch.score", f"--model={GOLDEN / 'tiny_bert'}", "--data=nowhere.txt"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, "nowhere.txt" in done.stderr.splitlines()[-1]) == (2, True)
