"""The scripts that draw the charts: Vega, Vega-Lite and Vega-Embed, from the package vl-convert-python, as one text."""

import contextlib
import functools
import importlib.metadata
import pathlib

from bert import files
from bert.errors import InputError


@functools.cache
def scripts(cache: pathlib.Path | None = None) -> str:
    """The bundle. ``cache``: a folder that keeps it, since making it takes five seconds; None: it is not kept.

    Raises InputError where the package is not installed.
    """
    try:
        version = importlib.metadata.version("vl-convert-python")
    except importlib.metadata.PackageNotFoundError:
        raise InputError("reports need the package vl-convert-python: pip install vl-convert-python") from None
    path = cache and cache / f"vega-{version}.js"
    if path and path.is_file() and (text := path.read_text(encoding="utf-8")).endswith(_END):
        return text
    import vl_convert  # 30 MB of code, for this alone

    text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed") + _END
    if "</script" in text.lower() or "<!--" in text:
        raise InputError("the scripts of vl-convert-python cannot stand in a page; install another version of it")
    if path:
        with contextlib.suppress(OSError):  # then it is made again the next time
            files.write(path, text)
    return text


_END = "\n// end of Vega\n"
