"""A browser that shows the reports of runs, and complains of requests and of anything on its console."""

import pathlib

import pytest

from bert.reports import page, runs
from tests.bert.pages.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> pathlib.Path:
    """The folder that keeps the scripts between tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def show(browser, cache, tmp_path):
    """Opens the report of some runs; at the end of the test nothing was asked for, and the console is empty."""

    def shown(*folders: pathlib.Path) -> Browser:
        path = tmp_path / "page.html"
        found = [runs.read(folder, folder.name) for folder in folders]
        path.write_text(page.page(found, cache), encoding="utf-8")
        assert path.stat().st_size < 5_000_000
        browser.requests.clear()
        browser.errors.clear()
        browser.open(path)
        browser.run("ready")
        return browser

    yield shown
    assert browser.errors == []
    assert browser.requests == [(tmp_path / "page.html").as_uri()]
