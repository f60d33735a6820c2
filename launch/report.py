"""Shows what runs did: curves, scores, settings, data and predictions, as one HTML file or as text.

bert report runs/mine
bert report runs/a runs/b --out=compared.html
bert report runs/mine --text

The file makes no connection; a browser opens it. Each run writes its own report at its end (RUN/report.html).
"""

import pathlib

from bert.errors import InputError, printable
from launch import console, flags
from tasks.files.outputs import write_whole

OPTIONS = {
    "out": "HTML file to write (of one run RUN/report.html, of several report.html, where not given)",
    "text": "--text prints a short form instead of writing a file",
}


def run(argv: list[str]) -> None:
    argv = ["--text=yes" if word == "--text" else word for word in argv]
    _, options = flags.parse(argv, __doc__, OPTIONS, arguments="folders of runs; several are compared")
    as_text, named = options.yes_or_no("text"), options.arguments
    if not named:
        raise InputError("no run is named; give the folder of one or more runs, such as runs/mine")
    if as_text and options.out:
        raise InputError("--text and --out are both given; give one of them")
    from bert.reports import page, records, runs, text  # JAX is slow to import, and --help needs none
    from launch import runtime

    shown = runs.read_all(named)
    if as_text:
        print(text.text(shown))
        return
    path = pathlib.Path(options.out or (pathlib.Path(named[0]) if len(named) == 1 else pathlib.Path()) / records.REPORT)
    write_whole(path, page.page(shown, runtime.user_cache()))
    print(printable(f"wrote {path}"), file=console.beside(options.out))


if __name__ == "__main__":
    flags.main(run)
