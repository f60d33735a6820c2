"""Settings of a batch: each wrong value is refused."""

import pytest

from bert.data.settings import BatchSettings
from bert.errors import InputError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mask_share": 0.9, "random_share": 0.3}, "mask_share 0.9 \\+ random_share 0.3 must be at most 1"),
        ({"max_length": 7}, "max_length 7 must be a whole number from 8"),
        ({"batch_size": 0}, "batch_size 0"),
        ({"batch_size": 8.0}, "batch_size 8.0"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 1 << 32}, "seed 4294967296 must be a whole number from 0 to 4,294,967,295"),
        ({"max_examples": -1}, "max_examples -1 must be a whole number from 1 to 64, or not set"),
        ({"max_examples": 0}, "max_examples 0"),
        ({"mask_budget": 0}, "mask_budget 0"),
        ({"mask_rate": 0.0}, "mask_rate 0.0"),
        ({"mask_rate": 15}, "mask_rate 15"),
        ({"mask_share": -0.1}, "mask_share -0.1"),
        ({"short_probability": 2}, "short_probability 2"),
        ({"objective": "next"}, "objective 'next' is unknown; choose one of nsp, sop, none"),
    ],
)
def test_settings_are_checked(values, message):
    """Each wrong value is refused by name and number."""
    with pytest.raises(InputError, match=message):
        BatchSettings(**{"batch_size": 6, "max_length": 64, **values})


def test_default_budget():
    """20 targets in 128 places, 78 in 512: the rounded rate and one more."""
    budgets = [BatchSettings(batch_size=1, max_length=length).masks_in_row for length in (128, 512)]
    assert budgets == [20, 78]
