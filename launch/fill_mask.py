"""Fills the masks of a text: for each [MASK] the most probable tokens and their probabilities, then the filled text.

bert fill-mask --model=DIR "The capital of France is [MASK]." --top=10
bert fill-mask --model=DIR "The [MASK] sat." --show=page.html    and a page: attention, step by step
bert fill-mask --toy --show=page.html                            the page with a class sheet's numbers
"""

import pathlib

import bert
from bert.errors import InputError, printable
from launch import console, flags
from launch.options import Options
from tasks.files.outputs import write_whole

OPTIONS = {
    "model": "model directory or run directory",
    "top": "tokens to show for each mask (5 where not given)",
    "show": "HTML file to write: a page for a browser with each step of the attention, down to the products",
    "layer": "with --show: the layer to begin with, from 0 (the page has all that fit into 5 MB)",
    "head": "with --show: the head to begin with, from 0",
    "toy": "with --show, instead of a model: --toy for the numbers of a class sheet, --toy=FILE.json for others",
}


def run(argv: list[str]) -> None:
    argv = ["--toy=" if word == "--toy" else word for word in argv]
    toy = any(word.startswith("--toy=") for word in argv)
    required = ("show",) if toy else ("model",)
    _, options = flags.parse(argv, __doc__, OPTIONS, required, arguments="the text, with [MASK]")
    texts = options.arguments
    if toy:
        _show_numbers(options)
        return
    if not texts:
        raise InputError('the text is missing: bert fill-mask --model=DIR "a text with [MASK]"')
    if len(texts) > 1:
        raise InputError(f"{len(texts)} texts given ({texts[0]!r}, {texts[1]!r}, ...); put one text in quotes")
    if given := [name for name in ("layer", "head") if options[name] is not None and not options.show]:
        raise InputError(f"--{given[0]}={options[given[0]]} needs --show=page.html, the page that shows it")
    top = options.whole_number("top", 5)
    layer, head = (options.whole_number(name, 0, least=0) for name in ("layer", "head"))
    from launch import runtime  # JAX is slow to import, and --help needs none

    runtime.keep_programs(runtime.user_cache())
    model = bert.load(options.model)
    if options.show:
        from bert.pages import attention_page

        _write(options.show, attention_page.of_model(model, texts[0], layer, head, top))
    masks, stream = model.masks(texts[0]), console.beside(options.show)
    for number, candidates in enumerate(masks.ranked(top), start=1):
        print(f"mask {number}", file=stream)
        width = max(len(printable(token)) for token, _ in candidates)
        for rank, (token, probability) in enumerate(candidates, start=1):
            print(f"{rank:5d}  {printable(token):<{width}}  {probability:.4f}", file=stream)
    print(masks.filled(), file=stream)


def _show_numbers(options: Options) -> None:
    from bert.pages import attention_page

    other = [f"--{name}" for name in ("model", "top", "layer", "head") if options[name] is not None]
    if other or options.arguments:
        raise InputError(f"--toy takes no {other[0] if other else 'text'}; leave out one of them")
    _write(options.show, attention_page.of_numbers(pathlib.Path(options.toy) if options.toy else None))


def _write(path: str, page: str) -> None:
    write_whole(pathlib.Path(path), page)
    print(printable(f"wrote {path}"), file=console.beside(path))


if __name__ == "__main__":
    flags.main(run)
