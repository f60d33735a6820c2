"""Paths, modules, links and headings that the documentation, the Makefile, docstrings and comments name exist."""

import pathlib
import re
import subprocess

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = "bert|tasks|configs|launch|bench|tests|docs"
# Only with these endings: TensorFlow's variables have names such as bert/embeddings.
PATH = re.compile(rf"(?<![\w/.=-])((?:{FOLDERS})/(?:[\w/-]*\w\.(?:py|md)|(?:[\w-]+/)*))(?![\w*{{<])")
MODULE = re.compile(r"-m ((?:launch|bench)\.\w+)")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)")
EXAMPLES = re.compile(
    r"NAME|TASK|word_count|/[ax]\.py$|^docs/spec\.md$|^bert/_program/$"
)  # placeholders; a file of Git LFS; of the wheel


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=False).stdout
    names = [name for name in listed.splitlines() if re.fullmatch(r"[^/]+\.md|docs/.*\.md|Makefile|.*\.py", name)]
    return [name for name in names if name != "tests/docs/paths_test.py"]


def missing(text: str) -> list[str]:
    """Named paths and modules that do not exist."""
    paths = PATH.findall(text) + [f"{module.replace('.', '/')}.py" for module in MODULE.findall(text)]
    return [path for path in paths if not EXAMPLES.search(path) and not (CHECKOUT / path).exists()]


def test_named_paths_exist():
    files = tracked()
    if not files:
        pytest.skip("needs a git checkout")
    assert {name: absent for name in files if (absent := missing((CHECKOUT / name).read_text()))} == {}


def test_a_missing_path_is_noticed():
    text = "see bert/model/losses.py, `bert/absent.py`, docs/ and python -m launch.absent; tasks/NAME/job.py"
    assert missing(text) == ["bert/absent.py", "launch/absent.py"]


def anchors(text: str) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/*.md")], ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target.read_text()), anchor
