"""The class page: its data are the library's numbers, its text stays text, and in a browser it does what it says."""

import base64
import json
import pathlib
import re
import shutil

import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.pages import attention_page, template
from tests.bert.pages.browser import Browser

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
TINY = GOLDEN / "tiny_bert"
SHEET = json.loads((pathlib.Path(attention_page.__file__).parent / "class_sheet.json").read_text())
TEXT = "the cat [MASK] on the [MASK] </script><script>alert(1)</script><!--"


@pytest.fixture(scope="module")
def tiny():
    return bert.load(TINY)


@pytest.fixture(scope="module")
def page(tiny):
    return attention_page.of_model(tiny, TEXT, layer=1, head=2, top=10)


def island(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def decoded(text: str, *shape: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)


def test_data_are_the_numbers_of_the_library(tiny, page):
    data = island(page)
    T = len(data["tokens"])
    assert (data["layers"], data["heads"], data["layer"], data["head"]) == ([0, 1], [0, 1, 2, 3], 1, 2)
    assert data["tokens"][:6] == ["[CLS]", "the", "cat", "[MASK]", "on", "the"]
    assert [tiny.tokenizer.vocab[i] for i in data["ids"]] == data["tokens"]
    assert data["masks"] == [3, 6]
    q, k, v = (decoded(data[name], 2, 4, T, 8) for name in "qkv")
    for layer, head in ((0, 0), (1, 2), (1, 3)):
        steps = tiny.attention_steps(TEXT, layer, head)
        for got, want in ((q, steps.q), (k, steps.k), (v, steps.v)):
            np.testing.assert_allclose(got[layer, head], want, atol=1e-6)
        for name, norms_T in steps.norms().items():
            np.testing.assert_allclose(data["norms"][name][layer], norms_T, rtol=1e-5)
    np.testing.assert_array_equal(decoded(data["logits"], 2, 128), tiny.masks(TEXT).logits_PV)
    assert data["vocabulary"] == list(tiny.tokenizer.vocab)
    assert data["hidden"] == [[[]] * T] * 2


def test_a_text_stays_text(page):
    """Nothing of it ends the data, and the page has no scripts but its own three."""
    assert island(page)["text"] == TEXT
    assert page.count("<script") == page.count("</script") == 3
    assert "<!--" not in page


def test_a_page_that_would_be_too_large_keeps_the_layer_or_the_head_asked_for(tiny, page, monkeypatch):
    """Just too little room: fewer layers, then fewer heads; what is left are the same numbers."""
    whole, T = island(page), len(island(page)["tokens"])
    for limit, layers, heads in ((len(page) + 49_000, [1], [0, 1, 2, 3]), (len(page), [1], [2])):
        monkeypatch.setattr(template, "LIMIT", limit)
        small = island(attention_page.of_model(tiny, TEXT, layer=1, head=2))
        assert (small["layers"], small["heads"]) == (layers, heads)
        got, want = decoded(small["k"], 1, len(heads), T, 8), decoded(whole["k"], 2, 4, T, 8)[1:][:, heads]
        np.testing.assert_allclose(got, want, atol=1e-6)
        assert len(small["norms"]["output"]) == 1


def test_of_many_masks_the_first_ones_are_filled(tiny, monkeypatch):
    """As many as there is room for, but one at least."""
    monkeypatch.setattr(attention_page, "_ROOM_FOR_MASKS", 0)
    data = island(attention_page.of_model(tiny, TEXT))
    assert data["masks"] == [3]
    np.testing.assert_array_equal(decoded(data["logits"], 1, 128), tiny.masks(TEXT).logits_PV[:1])


@pytest.mark.parametrize(
    ("folder", "name"), [("my_run/model", "my_run"), ("my_run/checkpoints", "my_run"), ("my_model", "my_model")]
)
def test_a_model_of_a_run_has_the_runs_name(tmp_path, folder, name):
    shutil.copytree(TINY, tmp_path / folder)
    assert island(attention_page.of_model(bert.load(tmp_path / folder), "[MASK]"))["model"] == name


def test_hidden_keys_are_named():
    """Those of each query of each layer."""
    allowed_K1TS = np.array([[[[True, False], [True, True]]], [[[False, False], [False, True]]]])
    assert attention_page._hidden({"allowed": allowed_K1TS}) == [[[1], []], [[0, 1], [0]]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 2}, "layer is 2; .*0 to 1"),
        ({"head": 4}, "head is 4; .*0 to 3"),
        ({"top": 0}, "top is 0"),
        ({"top": 2.5}, "top is 2.5"),
    ],
)
def test_what_is_not_there_is_refused(tiny, options, message):
    with pytest.raises(InputError, match=message):
        attention_page.of_model(tiny, "a [MASK]", **options)


def test_the_sheet_is_the_class_sheet(tmp_path):
    """The numbers of the page without a model, and the sheet's own file as --toy, also inside another object."""
    path, inside = GOLDEN / "activity_sheet.json", tmp_path / "inside.json"
    golden = json.loads(path.read_text())
    inside.write_text(json.dumps({"activity_sheet": golden}))
    for data in (island(attention_page.of_numbers(source)) for source in (None, path, inside)):
        assert {name: data[name] for name in ("tokens", "keys", "queries", "values", "logits")} == {
            name: golden[name] for name in ("tokens", "keys", "queries", "values", "logits")
        }
        assert data["vocabulary"] == list(golden["vocabulary"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": None}, "keys must be a list of 4"),
        ({"keys": SHEET["keys"][:3]}, "keys must be a list of 4"),
        ({"queries": [[1, 2]] * 4}, r"queries\[0\] is \[1, 2\]; .*3 numbers"),
        ({"values": [[1], [2], [3], ["x"]]}, r"values\[3\] is .*1 numbers"),
        ({"logits": [1, 2, 3, 4, True]}, r"logits\[4\] is True"),
        ({"tokens": []}, "tokens is "),
        ({"word": "cat"}, "'cat', which is not in the vocabulary"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(tmp_path, change, message):
    path = tmp_path / "own.json"
    path.write_text(json.dumps(SHEET | change))
    with pytest.raises(InputError, match=message) as caught:
        attention_page.of_numbers(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_that_is_missing_or_lacks_a_part(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        attention_page.of_numbers(tmp_path / "no.json")
    (tmp_path / "part.json").write_text('{"tokens": ["a"]}')
    with pytest.raises(InputError, match="keys missing"):
        attention_page.of_numbers(tmp_path / "part.json")


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def opened(browser, tmp_path):
    """opened(page): the browser with that page; at the end, nothing was asked for and nothing complained."""
    path = tmp_path / "page.html"

    def open_page(page: str) -> Browser:
        browser.requests.clear()
        path.write_text(page)
        browser.open(path)
        return browser

    yield open_page
    assert browser.run("1") == 1
    assert (browser.requests, browser.errors) == ([path.as_uri()], [])


def cells(browser: Browser, part: str, column: int, of: str = "tbody tr:has(td + td)") -> list[float]:
    """The first number in each cell of a column; "hidden" rows are left out."""
    texts = browser.run(
        f"[...document.querySelectorAll('#{part} {of} td:nth-child({column})')].map((x) => x.textContent)"
    )
    return [float(text.split()[0].replace("−", "-")) for text in texts if text not in ("hidden", "")]


def click(browser: Browser, selector: str) -> None:
    browser.run(f"document.querySelector(`{selector}`).click()")


def choose(browser: Browser, id: str, value: object) -> None:
    browser.run(
        f"{{const x = document.getElementById('{id}'); x.value = '{value}'; x.dispatchEvent(new Event('change'))}}"
    )


def text(browser: Browser, selector: str) -> str:
    return browser.run(f"document.querySelector(`{selector}`).textContent")


def equal(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=0.5000001e-4)


@pytest.mark.slow
def test_the_sheet_in_a_browser(opened):
    """Every step for every query, with and without scaling; the loss and gradient for every word."""
    golden = json.loads((GOLDEN / "activity_sheet.json").read_text())
    browser = opened(attention_page.of_numbers())
    for t, steps in enumerate(golden["queries_steps"].values()):
        choose(browser, "query", t)
        for column, name in ((3, "scores"), (4, "scaled"), (5, "exponentials"), (6, "weights")):
            equal(cells(browser, "steps", column), steps[name])
        equal(
            browser.run("[...document.querySelectorAll('#steps tfoot button')].map((x) => +x.textContent)"),
            steps["output"],
        )
        assert cells(browser, "steps", 6, "tfoot tr") == [1]
        click(browser, "#unscaled")
        equal(cells(browser, "steps", 6), steps["without_scaling"]["weights"])
        click(browser, "#unscaled")
    equal(cells(browser, "prediction", 6), golden["probabilities"])
    for word, wanted in golden["loss"].items():
        choose(browser, "word", word)
        numbers = re.findall(r"\d+\.\d{4}", text(browser, "#loss p"))
        names = ("probability", "loss_nats", "loss_bits", "perplexity")
        equal([float(number) for number in numbers], [wanted[name] for name in names])
        equal(cells(browser, "loss", 4), wanted["gradient_of_logits"])
    choose(browser, "word", "cat")
    assert "not in the vocabulary" in text(browser, "#word-error")


@pytest.mark.slow
def test_a_number_opens_the_sum_that_makes_it(opened):
    browser = opened(attention_page.of_numbers())
    click(browser, '[data-key="step a 0"]')
    assert (
        text(browser, "#steps .explained") == "q · k = 0.7 · 0.2 + 0.2 · 0.5 + 0.5 · 0.7 = 0.14 + 0.1 + 0.35 = 0.5900"
    )
    assert browser.run("document.activeElement.dataset.key") == "step a 0", "the keyboard stays where it was"
    click(browser, '[data-key="step y 0"]')
    assert text(browser, "#steps .explained").endswith("= 0.0736 + 0.179 + 0.0447 + 0.1862 = 0.4836")
    click(browser, '[data-key="step p 1 2"]')
    assert text(browser, "#steps .explained") == "weight · value = 0.2984 · 0.8 = 0.2387"
    click(browser, '[data-key="share 3"]')
    assert text(browser, "#prediction .explained").endswith("2.1815 / 43.1906 = 0.0505")
    click(browser, '[data-key="share 3"]')
    assert browser.run("document.querySelectorAll('.explained').length") == 0


@pytest.mark.slow
def test_hidden_keys_worksheet_and_own_numbers(opened):
    browser = opened(attention_page.of_numbers())
    click(browser, '[data-key="hide 3"]')
    shares = np.exp(np.array([0.59, 0.93, 0.43]) / np.sqrt(3))
    equal(cells(browser, "steps", 6), [*shares / shares.sum(), 0])
    for s in range(3):
        click(browser, f'[data-key="hide {s}"]')
    assert "Every key is hidden" in text(browser, "#steps")
    click(browser, '[data-key="hide 0"]')
    equal(cells(browser, "steps", 6), [1, 0, 0, 0])
    for s in range(1, 4):
        click(browser, f'[data-key="hide {s}"]')

    click(browser, "#worksheet")
    for part in ("steps", "loss"):
        assert not re.search(r"\d\.\d", text(browser, f"#{part}")), "a worksheet shows no answer"
    assert "0.0505" not in text(browser, "#prediction")
    assert "boring”" not in text(browser, "#prediction")
    assert "0.2984" in text(browser, "#answers")
    click(browser, "#worksheet")

    def write(id: str, lines: str) -> None:
        lines = json.dumps(lines)
        browser.run(
            f"{{const x = document.getElementById('{id}'); x.value = {lines}; x.dispatchEvent(new Event('input'))}}"
        )

    write("logits", "sun: 1\nmoon: 1")
    equal(cells(browser, "prediction", 6), [0.5, 0.5])
    before = cells(browser, "steps", 3)
    write("keys", "Deep: 0,2 0.5 0.7")
    assert "keys, line 1: “0,2” is no number" in text(browser, "#own-error")
    write("keys", "Deep: 1 2 3\nLearning: 1 2\nis: 1 2 3\nMASK: 1 2 3")
    assert "keys, line 2: 2 numbers; it must have 3" in text(browser, "#own-error")
    assert cells(browser, "steps", 3) == before
    write("keys", "Deep: 1 0 0\nLearning: 0 1 0\nis: 0 0 1\nMASK: 0 0 0")
    equal(cells(browser, "steps", 3), [0.7, 0.2, 0.5, 0])
    assert text(browser, "#own-error") == ""


@pytest.mark.slow
def test_a_model_in_a_browser(opened, tiny, page):
    """What is shown equals the library's numbers, for the head asked for and for each other, at either mask."""
    browser = opened(page)
    shown_first, others = (1, 2, 3), ((layer, head, t) for t in (3, 6) for layer in (0, 1) for head in range(4))
    for number, (layer, head, t) in enumerate((shown_first, *others)):
        if number:
            for id, value in (("layer", layer), ("head", head), ("query", t)):
                choose(browser, id, value)
        steps = tiny.attention_steps(TEXT, layer, head)
        mixture = browser.run("[...document.querySelectorAll('#steps tfoot button')].map((x) => x.textContent)")
        equal([float(x.replace("−", "-")) for x in mixture], steps.mixture[t, :4])
        for column, array in ((3, steps.scores), (4, steps.scaled), (6, steps.weights)):
            np.testing.assert_allclose(cells(browser, "steps", column), array[t], atol=0.51e-4)
        norms = [norms_T[t] for norms_T in steps.norms().values()]
        np.testing.assert_allclose(cells(browser, "between", 3)[:7], norms[1:], atol=0.51e-4)
        ranked = tiny.fill_mask(TEXT, top=10)[0 if t == 3 else 1]
        shown = dict(zip(browser.run("prediction().shown.map((id) => data.vocabulary[id])"),
                         cells(browser, "prediction", 6), strict=True))  # fmt: skip
        for word, share in ranked:
            assert shown[word] == pytest.approx(share, abs=0.51e-4)
        assert cells(browser, "prediction", 6, "tfoot tr:last-child") == [1]
    choose(browser, "word", "[PAD]")
    order = np.argsort(-tiny.masks(TEXT).logits_PV[1], kind="stable").tolist()
    assert text(browser, "#prediction .marked td:nth-child(3)") == str(order.index(0) + 1)
    assert text(browser, "#about").endswith(TEXT)


@pytest.mark.slow
def test_a_printed_page_is_no_wider_than_a4(opened, page):
    browser, a4 = opened(page), {"width": 688, "height": 1017, "deviceScaleFactor": 1, "mobile": False}  # less margins
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call("Emulation.setDeviceMetricsOverride", **a4)
    widths = browser.run("[...document.querySelectorAll('table, main')].map((x) => x.scrollWidth)")
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.call("Emulation.clearDeviceMetricsOverride")
    assert len(widths) == 6
    assert max(widths) <= 688
