"""The corpus of `make pretrain`: the docstrings of the standard library and of all installed packages.

`ast` reads them from the source files; no package is imported. One docstring is one document. Left out: tests, vendored
copies, code (examples, tables, directives), documents of fewer than 8 words, exact duplicates.
"""

import ast
import gc
import importlib.metadata
import inspect
import multiprocessing
import pathlib
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence

from bert import worker_pool

MIN_WORDS = 8  # shorter docstrings ("Return self.") teach little, and cannot hold two sentences
MAX_FILE_BYTES = 4 << 20
TASK_FILES = 32  # read by a worker at once
SKIPPED = re.compile(
    r"(^|[/_.])(tests?|testing|_?vendor(ed)?|_vendor|third_party|externals?|site-packages|idlelib|lib2to3|__pycache__)"
    r"([/_.]|$)|(^|/)(conftest|test_\w+|\w+_test|\w+_pb2)\.py$"
)


def installed() -> list[str]:
    """Python's version and "name version" of every installed distribution, sorted: what the text depends on."""
    names = {f"{package.metadata['Name']} {package.version}" for package in importlib.metadata.distributions()}
    return [f"python {sys.version.split()[0]}", *sorted(names)]


def source_files() -> list[tuple[str, pathlib.Path]]:
    """(module path, file) of every Python source file with documentation worth reading, sorted by module path."""
    standard = pathlib.Path(sysconfig.get_path("stdlib"))
    files = {file.relative_to(standard).as_posix(): file for file in standard.rglob("*.py")}
    for distribution in importlib.metadata.distributions():
        for entry in distribution.files or ():
            name = entry.as_posix()
            if name.endswith(".py") and not name.startswith(".."):
                files.setdefault(name, pathlib.Path(str(distribution.locate_file(entry))))
    return sorted((name, file) for name, file in files.items() if not SKIPPED.search(name))


def documents(workers: int = 1) -> Iterator[tuple[str, str]]:
    """(name, text) of each document, in the order of the module paths and lines, whatever the number of workers.

    The text is hard-wrapped paragraphs with blank lines between them.
    """
    files = source_files()
    seen: set[str] = set()
    tasks = [files[start : start + TASK_FILES] for start in range(0, len(files), TASK_FILES)]
    for texts in worker_pool.ordered_map(_read_files, tasks, workers=workers, setup=_start_reading, setup_arguments=()):
        for name, text in texts:
            key = " ".join(text.split())
            if key not in seen:
                seen.add(key)
                yield name, text


def _start_reading() -> None:
    if multiprocessing.parent_process() is not None:  # a worker, which does nothing else: trees have no cycles
        gc.disable()


def _read_files(named: Sequence[tuple[str, pathlib.Path]]) -> list[tuple[str, str]]:
    return [document for name, path in named for document in _read_file(name, path)]


def _read_file(name: str, path: pathlib.Path) -> list[tuple[str, str]]:
    """Documents of one source file; none where it is not valid Python of this version."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:  # a table of data
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the sources of others may warn of odd escapes
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    strings = _topics(tree) if name == "pydoc_data/topics.py" else _docstrings(tree)
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    texts = ((f"{module}:{line}", prose(docstring)) for line, docstring in strings)
    return [(where, text) for where, text in texts if len(text.split()) >= MIN_WORDS]


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, text) of every docstring, and of the texts given to numpy's add_newdoc, which documents compiled code."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node, clean=True):
                yield getattr(node, "lineno", 1), text
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _is_add_newdoc(node.value.func):
            strings = [text for _, text in _strings(ast.walk(node))]
            if strings:
                yield node.lineno, inspect.cleandoc(max(strings, key=len))
        # Statements only: expressions hold no definitions, and they are most of a tree.
        for field in ("finalbody", "orelse", "handlers", "body"):
            waiting += reversed(getattr(node, field, ()))


def _is_add_newdoc(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name == "add_newdoc"


def _strings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _topics(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The language reference as `help()` shows it: the values of one large dict in the standard library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            yield from ((line, inspect.cleandoc(text)) for line, text in _strings(node.values))


_MARKS = (  # and what stays of them
    (re.compile(r":[\w:+.-]+:`~?([^`<]*?)(?: ?<[^`>]*>)?`"), r"\1"),  # :class:`~a.b` and :ref:`text <label>`
    (re.compile(r"`([^`<]+?) ?<[^`>]*>`_{1,2}"), r"\1"),  # `text <address>`_
    (re.compile(r"(``|`)(.+?)\1_{0,2}"), r"\2"),
    (re.compile(r"(?<![\w*])(\*\*?)([^*\s](?:[^*]*[^*\s])?)\1(?![\w*])"), r"\2"),
    (re.compile(r" ?\[[\w#*]+\]_"), ""),  # a footnote
)
_FIELD = re.compile(r"^:(?:param|arg|type|rtype|returns?|raises?|keyword|var|ivar|cvar)\b[^:]*: ?")
_PARAMETER = re.compile(r"^[\w*`, .\[\]-]+ : \S.{0,60}$")  # NumPy's "x : array_like, optional"
_ARGUMENT = re.compile(r"^[*`]{0,2}\w+`?(?: \([^)]*\))?:(?: |$)")  # Google's "x (array, optional): text"
_WORD = re.compile(r"[A-Za-z]{2,}")
_UNUSUAL = re.compile(r"[^\w .,;:'()-]|[\d_]")
_BULLET = re.compile(r"^(?:[-*+\u2022]|\(?\w{1,3}[.)]) +")


def prose(docstring: str) -> str:
    """Paragraphs of a docstring, one blank line apart, without code, tables, directives and marks of layout."""
    paragraphs = []
    for block in _text_blocks(docstring):
        text = " ".join(block)
        for pattern, replacement in _MARKS:
            text = pattern.sub(replacement, text)
        # Three words or more, and nine of ten characters are letters, blanks or common punctuation.
        if len(_WORD.findall(text)) >= 3 and len(_UNUSUAL.findall(text)) <= 0.1 * len(text):
            paragraphs.append(text)
    return "\n\n".join(paragraphs)


def _text_blocks(docstring: str) -> Iterator[list[str]]:
    """Runs of lines that belong together and may be prose; examples and directives are left out."""
    block: list[str] = []
    hidden: int | None = None  # indentation of the line that began an example: all deeper lines belong to it
    in_doctest = False
    for line in docstring.expandtabs().split("\n"):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        in_doctest = bool(text) and (in_doctest or text.startswith(">>>"))
        if hidden is not None and text and indent <= hidden:
            hidden = None
        mark = _PARAMETER.match(text) or (len(text) > 1 and not any(map(str.isalnum, text)))  # an underline
        if not text or in_doctest or hidden is not None or mark or text.startswith((".. ", "$ ", "|", "+-")):
            if block:
                yield block
            block = []
            if text.startswith(".. "):
                hidden = indent
            continue
        started = _BULLET.match(text) or _FIELD.match(text)
        if (started or _ARGUMENT.match(text)) and block:
            yield block
            block = []
        block.append(text[started.end() :] if started else text)
        if text.endswith("::"):
            block[-1] = block[-1][:-1].strip()
            hidden = indent
    if block:
        yield block
