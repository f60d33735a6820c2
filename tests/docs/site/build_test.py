"""The documentation site: all pages are in its navigation, its reference is complete, its search works."""

import importlib
import pathlib
import tomllib

import pytest

import bert
from bert.errors import RunError
from docs.site import build, migration, reference
from launch.commands import module_of
from launch.foreign_tools import TOOLS
from tests.bert.pages.browser import Browser

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]


def named(entries) -> list[str]:
    """The pages that a navigation names, sections opened."""
    values = [value for entry in entries for value in entry.values()]
    return [name for value in values for name in ([value] if isinstance(value, str) else named(value))]


def test_the_navigation_names_every_page_once():
    settings = tomllib.loads((CHECKOUT / "docs" / "site" / "zensical.toml").read_text())
    pages = [*build.sources(), *(f"reference/{name}" for name in reference.pages())]
    assert sorted(named(settings["project"]["nav"])) == sorted(pages)


def test_links_stay_in_the_site():
    """To another page: its name there; to another file of the checkout: the words alone; in code: as written."""
    text = "[a](weights.md#x) [`b`](../bert/files.py) [c](../CHANGELOG.md) [d](https://e.f)\n```\n[e](../bert)\n```\n"
    want = "[a](weights.md#x) `b` [c](CHANGELOG.md) [d](https://e.f)\n```\n[e](../bert)\n```\n"
    assert build.with_links_inside(text, CHECKOUT / "docs") == want
    assert build.with_links_inside("[a](docs/weights.md)", CHECKOUT) == "[a](weights.md)"


def test_the_reference_has_every_option_and_setting():
    commands, settings = reference.commands(), reference.settings()
    for name in reference.COMMANDS:
        for option, text in importlib.import_module(module_of(name)).OPTIONS.items():
            assert f"| `--{option}` | {reference.escaped(text)} |" in commands
    assert "| `optimizer.learning_rate` | `3e-05` | the peak; BERT appendix A.3: 2e-5, 3e-5 or 5e-5 |" in settings
    assert set(bert.__all__) <= set(reference.python().replace("`", " ").replace(",", " ").split())


def test_texts_are_shown_as_they_are():
    assert reference.escaped("a_b <x> `c|d_e` [f]") == r"a\_b \<x\> `c\|d_e` \[f\]"


def test_the_page_for_other_tools_has_a_table_of_each_and_every_flag():
    """Named settings exist: foreign_flags_test.py checks the table that this is made of."""
    page = (CHECKOUT / "docs" / "migration.md").read_text()
    assert set(migration.MARK.findall(page)) == set(TOOLS) == set(migration.COMMANDS)
    rows = migration.flags_of("run_glue").splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(TOOLS["run_glue"])
    assert "| `train_file` | `--config.data` |  |" in rows
    assert "| `mlm_probability` | `--config.examples.mask_rate` |  |" in migration.flags_of("run_mlm_flax")


@pytest.fixture
def generator():
    if not build.GENERATOR.exists():
        pytest.skip("needs the generator of the site, which make docs installs")


@pytest.mark.slow
def test_a_link_to_nowhere_is_an_error(generator, tmp_path, capsys):
    build.collect(tmp_path)
    (tmp_path / "pages" / "index.md").write_text("# Home\n\n[a](weights.md#nowhere)\n")
    with pytest.raises(RunError, match="refuses"):
        build.generate(tmp_path)
    assert "weights.md#nowhere" in capsys.readouterr().err


def wait_for(browser, condition: str) -> None:
    """Waits until the search box, which is a shadow tree, is as the function says."""
    look = f"{condition}(document.activeElement.shadowRoot) ? done(true) : setTimeout(look, 100)"
    assert browser.run(f"new Promise(done => {{const look = () => {look}; look()}})")


@pytest.mark.slow
def test_the_site_builds_and_its_search_works_from_files(generator, tmp_path):
    """Without a request to anywhere, and without an error in the browser."""
    build.run(["build", f"--out={tmp_path / 'docs'}"])
    site = tmp_path / "docs" / "site"
    python = (site / "reference" / "python.html").read_text()
    assert "from_params" in python
    browser = Browser(tmp_path / "profile")
    try:
        for page in sorted(site.rglob("*.html")):
            browser.open(page)
        browser.open(site / "index.html")
        browser.run("document.querySelector('.md-search__button').click()")
        wait_for(browser, "(box => box && box.querySelector('input'))")
        browser.call("Input.insertText", text="viterbi")
        wait_for(browser, "(box => box && /decoding=viterbi/.test(box.textContent))")
        assert [url for url in browser.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        assert browser.errors == []
    finally:
        browser.close()
