"""The encoders of the comparison from scratch: equal trunks, and settings that the pretraining command takes."""

import dataclasses
import functools
import json

import pytest

from bench import glue_encoders
from bench.glue_encoders import trunk_size
from bert.architectures.bert import BertConfig
from bert.architectures.recurrent import RecurrentConfig
from bert.errors import InputError
from launch import flags

V, LENGTH = 40, 64


@pytest.fixture(scope="module")
def encoders():
    return {encoder.name: encoder for encoder in glue_encoders.encoders("tiny", LENGTH, V)}


def test_the_trunk_of_bert_is_its_blocks():
    """Four projections, two feed-forward layers and two norms a block, each with a bias."""
    D = 128
    block = 4 * (D * D + D) + (D * 4 * D + 4 * D) + (4 * D * D + D) + 4 * D
    assert trunk_size(BertConfig.of_size("tiny", vocab_size=V)) == 2 * block


def test_the_trunk_of_a_recurrent_network_is_its_cells():
    """3 (I J + J^2 + 2 J) a direction for the first layer, with I = J for the second."""
    sizes = RecurrentConfig(vocab_size=V, embedding_size=24, hidden_size=64, num_layers=2)
    assert trunk_size(sizes) == 2 * 3 * (24 * 32 + 32 * 32 + 2 * 32) + 2 * 3 * (2 * 32 * 32 + 2 * 32)


def test_trunks_are_equal_and_the_deep_one_is_twice_as_large(encoders):
    trunks = {name: trunk_size(encoder.configuration(V)) for name, encoder in encoders.items()}
    glue_encoders.check_trunks(list(encoders.values()), trunks)
    assert trunks["GPT"] == trunks["BERT"]
    assert trunks["BERT, twice as deep"] == 2 * trunks["BERT"]
    assert trunks["bidirectional RNN"] == pytest.approx(trunks["BERT"], rel=0.02)


def test_unequal_trunks_are_refused(encoders):
    trunks = {name: 1000 * encoder.scale for name, encoder in encoders.items()}
    check = functools.partial(glue_encoders.check_trunks, list(encoders.values()))
    check(trunks | {"GPT": 1049})
    with pytest.raises(InputError, match=r"GPT .*1,051 .*1,000 within 5%"):
        check(trunks | {"GPT": 1051})
    with pytest.raises(InputError, match=r"twice as deep .*1,000 .*2,000"):
        check(trunks | {"BERT, twice as deep": 1000})


@pytest.mark.parametrize("name", ["BERT", "bidirectional RNN", "GPT", "BERT, twice as deep"])
def test_the_command_trains_what_was_counted(encoders, name):
    words = [*encoders[name].words(), *glue_encoders.RECIPE]
    config, _ = flags.parse(["pretrain", *words], "", {}, config_file=None)
    trained, planned = config.model.to_dict(), dataclasses.asdict(encoders[name].configuration(V))
    sizes = set(trained) & set(planned) & set(encoders[name].model)
    assert trained["model_type"] == encoders[name].model_type
    assert sizes == set(encoders[name].model)
    assert {size: trained[size] for size in sizes} == {size: planned[size] for size in sizes}


def test_minutes_and_tokens_are_those_of_the_log(tmp_path, monkeypatch):
    """A window in which the clock was restarted at its end has no rate."""
    rows = [
        {"step": 10, "split": "train", "tokens": 100, "seconds_per_step": 6.0},
        {"step": 20, "split": "train", "tokens": 300, "seconds_per_step": 3.0},
        {"step": 25, "split": "train", "tokens": 50, "seconds_per_step": None},
        {"step": 25, "split": "validation", "loss": 2.0, "mlm_perplexity": 7.5},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    commands_run = []
    monkeypatch.setattr(glue_encoders.commands, "run", lambda *words: commands_run.append(words))
    facts = glue_encoders.pretrain(["--config=x"], 25, tmp_path)
    assert facts == {"steps": 25, "minutes": 1.5, "tokens": 450, "held_out": {"mlm_perplexity": 7.5}}
    assert commands_run[0][:2] == ("pretrain", "--config=x")
