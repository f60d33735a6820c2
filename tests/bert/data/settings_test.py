"""Settings of a batch: each wrong value is refused."""

import pytest

from bert.data.settings import BatchSettings
from bert.errors import InputError


@pytest.mark.parametrize(
    "values",
    [
        {"max_length": 7},
        {"batch_size": 0},
        {"batch_size": 8.0},
        {"seed": -1},
        {"seed": 1 << 32},
        {"max_examples": -1},
        {"max_examples": 65},
        {"mask_budget": -1},
        {"mask_rate": 0.0},
        {"mask_rate": 15},
        {"mask_share": -0.1},
        {"mask_share": 0.9, "random_share": 0.3},
        {"short_probability": 2},
        {"objective": "next"},
    ],
    ids=str,
)
def test_settings_are_checked(values):
    """Each wrong value is refused by name and value."""
    name, value = next(iter(values.items()))
    with pytest.raises(InputError, match=f"{name}.* {value!r}.* must be"):
        BatchSettings(**{"batch_size": 6, "max_length": 64, **values})


def test_default_budget():
    """20 targets in 128 places, 78 in 512: the rounded rate and one more."""
    budgets = [BatchSettings(batch_size=1, max_length=length).masks_in_row for length in (128, 512)]
    assert budgets == [20, 78]
