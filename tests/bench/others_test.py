"""The other implementations, if `make bench` or `make test-slow` has created their environments."""

import sys

import pytest

from bench import environments, rows
from bench.sentences import Sentences
from bench.turns import Peer

PRETRAINING = ("--size=tiny", "--batch=2", "--length=32")
FINETUNING = ("--step=finetune", "--size=tiny", "--lengths=sst2", "--count=8", "--batch=4")
CLASSIFYING = ("--step=classify", *FINETUNING[1:])
CONTINUING = ("--model=gpt2", "--step=generate", "--batch=2", "--length=4", "--new=3")
EMBEDDING = ("--size=tiny", "--count=20")
PAIRS = ("--count=64", "--batch=16", "--steps=2")
TRANSLATING = ("--count=4", "--batch=2", "--new=3")
HALF = "--dtype=bfloat16"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        (rows.AS_SHIPPED, PRETRAINING),
        (rows.GATHERED, (*PRETRAINING, HALF)),
        (rows.COMPILED, PRETRAINING),
        (rows.FLAX, PRETRAINING),
        (rows.KERAS, PRETRAINING),
        (rows.PADDED, FINETUNING),
        (rows.PADDED, (*FINETUNING, HALF)),
        (rows.PADDED, CLASSIFYING),
        (rows.ONNX, CLASSIFYING),
        (rows.SENTENCES, EMBEDDING),
        (rows.LANGUAGE, ("--model=gru", "--batch=2", "--length=8")),
        (rows.LANGUAGE, ("--model=gpt2", "--batch=2", "--length=8")),
        (rows.LANGUAGE, CONTINUING),
        (rows.LANGUAGE_COMPILED, ("--model=lstm", "--batch=2", "--length=8")),
        (rows.BY_LENGTH, PAIRS),
        (rows.PACKED, PAIRS),
        (rows.BEAMS, TRANSLATING),
    ],
)
def test_another_runs(name, flags):
    """The smallest size on a few rows."""
    other = rows.OTHERS[name]
    if not (environments.FOLDER / other.environment / "ready").exists():
        pytest.skip("needs the environments that make bench creates")
    if name == rows.SENTENCES:  # our process, which starts first, writes the model
        Sentences("tiny", 20).write()
    if name == rows.BEAMS:  # and here the translations, which the other must equal
        assert Peer("ours", [sys.executable, "-m", "bench.ours_beams", *flags]).stop() == 0
    command = [environments.python_of(other.environment), "-m", f"bench.{other.module}"]
    peer = Peer(name, [*command, *flags, *other.flags])
    peer.run(2)
    assert peer.stop() == 0
    assert peer.seconds[0] > 0
