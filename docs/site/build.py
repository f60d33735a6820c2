"""Builds the documentation site without network: collects the pages, makes the reference, runs the generator.

python -m docs.site.build [--out=build/docs]

The pages are docs/*.md, docs/notebooks/*.py, CHANGELOG.md and CONTRIBUTING.md. A warning of the generator, such as a
link to nowhere, is an error. The site works from its files, without a server.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from bert.errors import RunError
from docs.site import migration, notebooks, reference
from launch import flags

CHECKOUT = pathlib.Path(__file__).parents[2]
GENERATOR = CHECKOUT / ".docs" / "bin" / "zensical"  # installed by `make docs`
OPTIONS = {"out": "folder to write: pages/ and site/ (build/docs where not given)"}
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)

# A browser starts no worker from a file, but one from its text. The generator would load a replacement for workers from
# the network.
WORKER = """if (location.protocol === "file:")
  window.Worker = class extends Worker {
    constructor() { super(URL.createObjectURL(new Blob([TEXT]))) }
  }
"""
SCRIPT = re.compile(r'https://unpkg\.com/iframe-worker/shim(?=.*?<script src="([^"]*)/bundle\.)', re.DOTALL)


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__ or "", OPTIONS)
    folder = pathlib.Path(options.out or "build/docs")
    collect(folder)
    generate(folder)
    finish(folder / "site")
    print(f"wrote {folder / 'site' / 'index.html'}")


def sources() -> dict[str, pathlib.Path]:
    """Name of a page -> its file."""
    files = [*sorted(CHECKOUT.glob("docs/*.md")), CHECKOUT / "CHANGELOG.md", CHECKOUT / "CONTRIBUTING.md"]
    return {file.with_suffix(".md").name: file for file in [*files, *sorted(CHECKOUT.glob("docs/notebooks/*.py"))]}


def collect(folder: pathlib.Path) -> None:
    """Writes all pages and the generator's settings into ``folder``."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pages" / "reference").mkdir(parents=True)
    here = pathlib.Path(__file__).parent
    settings = (here / "zensical.toml").read_text().replace('"CHECKOUT"', json.dumps(str(CHECKOUT)))
    (folder / "zensical.toml").write_text(settings)
    shutil.copy(here / "site.css", folder / "pages")
    for name, file in sources().items():
        written = notebooks.page(file) if file.suffix == ".py" else file.read_text()
        text = with_links_inside(written, file.parent)
        (folder / "pages" / name).write_text(migration.with_tables(text))
    for name, text in reference.pages().items():
        (folder / "pages" / "reference" / name).write_text(text)


def with_links_inside(text: str, place: pathlib.Path) -> str:
    """The page with links to other pages of the site; of a link to another file of the checkout only the words stay."""
    names = {file: name for name, file in sources().items()}

    def changed(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        if not target:
            return match[0]
        file = pathlib.Path(os.path.normpath(place / target))
        if file in names:
            return f"[{words}]({names[file]}{anchor})"
        return words if file.exists() else match[0]  # the generator reports what leads nowhere

    parts = CODE.split(text)
    return "".join(part if index % 2 else LINK.sub(changed, part) for index, part in enumerate(parts))


def generate(folder: pathlib.Path) -> None:
    """Runs the generator. Raises RunError where it warns of anything; what it says then goes to standard error."""
    done = subprocess.run([GENERATOR, "build", "--strict"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        said = re.sub(r"\x1b\[[\d;]*m", "", f"{done.stdout}{done.stderr}").split("Traceback (most recent")[0]
        print(said, file=sys.stderr)
        raise RunError("the generator refuses the pages, for the reasons above")


def finish(site: pathlib.Path) -> None:
    """Makes the search work from files, without a request to the network; drops the page for servers' errors."""
    (site / "404.html").unlink()
    scripts = site / "assets" / "javascripts"
    (worker,) = scripts.glob("workers/search.*.js")
    (scripts / "worker.js").write_text(WORKER.replace("TEXT", json.dumps(worker.read_text())))
    for page in site.rglob("*.html"):
        text, found = SCRIPT.subn(r"\1/worker.js", page.read_text())
        assert found == 1, page
        page.write_text(text)


if __name__ == "__main__":
    flags.main(run)
