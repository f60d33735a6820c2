"""Settings in a model directory: told values, defaults, and what is refused."""

import dataclasses

import pytest

from bert.errors import InputError
from bert.prediction import task_options


@dataclasses.dataclass(frozen=True)
class ClassificationOptions:
    max_length: int = 384
    window_step: int = 128
    max_question: int = 64
    share: float = 0.0
    rule: str = "viterbi"
    flag: bool = False


def read(told, longest=512) -> ClassificationOptions:
    return task_options.read(
        ClassificationOptions, {"task": told, "other": {"rule": "x"}} if told is not None else {}, "task", longest
    )


def test_what_is_not_told_is_the_default():
    assert read(None) == read({}) == ClassificationOptions()
    assert read({"rule": "greedy", "max_length": 100}) == dataclasses.replace(
        ClassificationOptions(), rule="greedy", max_length=100, window_step=33, max_question=16
    )


def test_written_and_read_again_it_is_the_same():
    whole = ClassificationOptions(200, 190, 60, 0.5, "greedy", True)
    assert read(dataclasses.asdict(whole)) == whole


def test_whole_numbers_are_numbers():
    found = read({"share": 1})
    assert (found.share, type(found.share)) == (1.0, float)


def test_settings_of_a_later_version_are_not_looked_at():
    assert read({"something": [1]}) == ClassificationOptions()


def test_models_of_few_positions_have_short_windows():
    """64 positions: a default step of 128 tokens would leave no window to read; told values stand as they are."""
    assert read({}, 64) == ClassificationOptions(64, 21, 10)
    assert read({"max_length": 300, "window_step": 20}, 64) == ClassificationOptions(64, 20, 10)
    assert read({}, 2).window_step == 1
    assert read({"max_length": 600}, 512) == ClassificationOptions(512), "longer windows do not lengthen the step"


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("viterbi", r"^task in config.json is 'viterbi'; it must be an object with names and values$"),
        ({"rule": 3}, r"^task in config.json: rule is 3; it must be like 'viterbi'$"),
        ({"max_length": "384"}, r"max_length is '384'; it must be like 384$"),
        ({"max_length": 384.0}, r"max_length is 384.0; it must be like 384$"),
        ({"window_step": True}, r"window_step is True; it must be like 128$"),
        ({"flag": 1}, r"flag is 1; it must be like False$"),
        ({"share": None}, r"share is None; it must be like 0.0$"),
    ],
)
def test_other_kinds_of_values_are_refused(told, message):
    with pytest.raises(InputError, match=message):
        read(told)
