"""Which annotators a setting keeps."""

import pytest

from tasks.files import annotators
from tests.tasks.one_line import message_of, says


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
    choice = annotators.choice_of(setting)
    assert [name for name in ("anna", "ben", "cleo") if name in choice] == stay.split()


def test_names_to_keep_and_to_leave_out_together_are_refused():
    assert says(message_of(annotators.choice_of, "a,-b"), "annotators 'a,-b' ... not both")
