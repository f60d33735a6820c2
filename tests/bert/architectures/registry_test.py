"""The registry: an architecture is found by its model_type, and nothing slow is imported before it is built."""

import dataclasses
import subprocess
import sys

import pytest

from bert import architectures
from bert.architectures.bert import BertConfig
from bert.architectures.bert_encoder import BertEncoder
from bert.errors import InputError

TINY = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


@pytest.mark.parametrize("named", [{}, {"model_type": None}, {"model_type": "bert"}])
def test_a_file_without_an_architecture_is_a_bert(named):
    """Google's files and those of before 2020 have no model_type."""
    config = architectures.config_from_json(TINY | named)
    assert config == BertConfig.from_json(TINY)
    assert isinstance(architectures.build(config), BertEncoder)


@pytest.mark.parametrize("model_type", ["roberta", ["bert"], 3])
def test_an_unknown_architecture_is_refused_by_name(model_type):
    with pytest.raises(InputError, match=r"^my.json: model_type .* bert"):
        architectures.config_from_json(TINY | {"model_type": model_type}, source="my.json")


def test_settings_that_an_architecture_lacks_are_left_out():
    changed = architectures.with_settings(BertConfig.from_json(TINY), {"remat": True, "kernel_width": 3})
    assert changed == dataclasses.replace(BertConfig.from_json(TINY), remat=True)


def test_a_configuration_needs_no_jax():
    """Checking settings must not wait for JAX to start."""
    program = (
        "import sys; from bert import architectures, BertConfig; architectures.config_from_json("
        f"{TINY!r}); print([name for name in ('jax', 'flax', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
