"""Pages of the site from notebooks in percent format: cells of Markdown become text, cells of code become blocks."""

import pathlib
import re

CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
NOTE = (
    "This page is a notebook, {file}. VS Code, PyCharm and Jupyter with Jupytext open the file as it is; "
    "`jupytext --to ipynb {name}` makes one for Colab, and `python {name}` runs all cells."
)


def page(file: pathlib.Path) -> str:
    """The notebook as Markdown, with a note behind its title."""
    _, *cells = CELL.split(file.read_text())
    parts = []
    for kind, cell in zip(cells[::2], cells[1::2], strict=True):
        if "[markdown]" in kind:
            parts.append(re.sub(r"^# ?", "", cell.strip(), flags=re.MULTILINE))
        else:
            parts.append(f"```python\n{cell.strip()}\n```")
    title, text = parts[0].split("\n", 1)
    parts[0] = f"{title}\n\n{NOTE.format(file=f'`docs/notebooks/{file.name}`', name=file.name)}\n{text}"
    return "\n\n".join(parts) + "\n"
