"""Optional packages: what needs one that is missing says so before it starts."""

import sys

import pytest

from bert.errors import InputError
from bert.extras import check_installed
from configs import table
from tasks.classification import job


def test_a_missing_package_is_named_with_the_extra_that_holds_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "absent", None)
    with pytest.raises(InputError, match=r"plots needs .* pip install Absent.*'drawing'"):
        check_installed("absent", "Absent", "drawing", "plots")
    check_installed("json", "json", "", "plots")


def test_the_baseline_asks_for_scikit_learn_before_any_file_is_read(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    config = table.get_config()
    config.data, config.baseline = str(tmp_path / "none.csv"), True
    with pytest.raises(InputError, match=r"config\.baseline.*scikit-learn"):
        job.read(config)
