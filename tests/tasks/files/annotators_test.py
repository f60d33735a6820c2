"""Which annotators a setting keeps."""

import pytest

from bert.errors import InputError
from tasks.files import annotators


@pytest.mark.parametrize(
    ("setting", "stay"),
    [
        ("", "anna ben cleo"),
        ("anna, ben", "anna ben"),
        ("-anna", "ben cleo"),
        (" -anna , -ben ", "cleo"),
        (",", "anna ben cleo"),
    ],
)
def test_names_that_stay(setting, stay):
    kept = annotators.choice_of(setting)
    assert [name for name in ("anna", "ben", "cleo") if name in kept] == stay.split()


def test_names_to_keep_and_to_leave_out_together_are_refused():
    with pytest.raises(InputError, match=r"^annotators 'a,-b': name those to keep, .*, not both$"):
        annotators.choice_of("a,-b")
