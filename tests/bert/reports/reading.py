"""Reads numbers back from a report in a browser."""

import json

from tests.bert.pages.browser import Browser


def drawn(browser: Browser, title: str) -> list[dict]:
    """The rows that the chart with a title was drawn from, as Vega holds them."""
    find = (
        f"find(f => f.querySelector('strong').textContent === {json.dumps(title)}).querySelector('.plot').dataset.chart"
    )
    return browser.run(f"views[[...document.querySelectorAll('figure')].{find}].data('source_0')")


def table(browser: Browser, caption: str) -> list[list]:
    """The rows of a table: the name, then the numbers with all their digits, or the text of cells without one."""
    return browser.run(
        f"(() => {{ const found = t => t.caption.textContent.startsWith({json.dumps(caption)});"
        "return [...[...document.querySelectorAll('table')].find(found).tBodies[0].rows]"
        ".map(r => [...r.cells].map(c => c.dataset.value ?? c.textContent)) })()"
    )
