"""Commands in processes of their own: what they refuse is the caller's error, in their words."""

import pytest

from bench import commands
from bert.errors import InputError


def test_a_refusal_is_passed_on():
    with pytest.raises(InputError, match=r"^--model is missing"):
        commands.run("evaluate")
