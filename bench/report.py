"""Results of the comparison on a CPU: a JSON file, and a markdown table for a document.

python -m bench.report --results=FILE.json --document=FILE.md

The table replaces the text between the two marker lines of the document.
"""

import json
import os
import pathlib
import platform
import re
from typing import Any

from bert import files
from bert.errors import InputError
from launch import flags

BEGIN, END = "<!-- make bench-update: begin -->", "<!-- make bench-update: end -->"
OPTIONS = {"results": "file written by bench.cpu", "document": "markdown file with the two marker lines"}
# Instructions that matrix products use on x86-64.
_INSTRUCTIONS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_tile")


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, doc=__doc__ or "", config_file="", options=OPTIONS, required=tuple(OPTIONS))
    path = pathlib.Path(options.results)
    if not path.exists():
        raise InputError(f"--results={path}: no such file; make bench writes it")
    update(pathlib.Path(options.document), table(json.loads(path.read_text())))
    print(f"wrote {options.document}")


def machine() -> dict[str, Any]:
    """Processor, cores that this process may use, memory and Python (Linux)."""
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.+)$", cpuinfo, re.MULTILINE)
    cpu_flags = re.search(r"^flags\s*: (.+)$", cpuinfo, re.MULTILINE)
    supported = cpu_flags[1].split() if cpu_flags else []
    return {
        "processor": model[1] if model else platform.machine(),
        "instructions": [name for name in _INSTRUCTIONS if name in supported],
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
    }


def merged(path: pathlib.Path, machine: dict[str, Any], measured: dict[str, Any], order: list[str]) -> dict[str, Any]:
    """The results in the file with one row added or replaced, without rows of another machine or not in ``order``."""
    results = json.loads(path.read_text()) if path.exists() else {}
    rows = results["rows"] if results.get("machine") == machine else []
    rows = [row for row in rows if row["row"] in order and row["row"] != measured["row"]] + [measured]
    return {"machine": machine, "rows": sorted(rows, key=lambda row: order.index(row["row"]))}


def write(path: pathlib.Path, results: dict[str, Any]) -> None:
    """Replaces the file atomically."""
    files.write(path, json.dumps(results, indent=1) + "\n")


def table(results: dict[str, Any]) -> str:
    """Markdown: the machine and the versions, then a line for each comparison."""
    system = results["machine"]
    instructions = f" with {', '.join(system['instructions'])}" if system["instructions"] else ""
    dates = sorted({row["date"] for row in results["rows"]})
    lines = [
        f"{system['cores']} cores of {system['processor']}{instructions}, {system['memory_gib']} GiB, "
        f"Python {system['python']}; "
        f"{', '.join(_versions(results['rows']))}. Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}; a row "
        "again: `python -m bench.cpu --out=runs/bench.json --rows=ROW`.",
        "",
        "| row | against | freed memory | ours | theirs | ratio | goal |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in results["rows"]:
        for line in row["lines"]:
            head = f"| {row['row']} | {line['against']} | {row['allocator']} | {_number(line['ours'])} {line['unit']} |"
            goal = "" if line["goal"] is None else f"{line['goal']:.2f}"
            if "error" in line:
                lines.append(f"{head} {line['error']} | | {goal} |")
            else:
                lines.append(f"{head} {_number(line['theirs'])} {line['unit']} | {line['ratio']:.2f} | {goal} |")
    return "\n".join(lines)


def _versions(rows: list[dict[str, Any]]) -> list[str]:
    processes = [one["told"] for row in rows for one in row["processes"].values() if "error" not in one]
    names = ("jax", "flax", "torch", "transformers", "sentence_transformers", "onnxruntime", "keras_hub")
    return sorted({f"{name} {versions[name]}" for versions in processes for name in names if name in versions})


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def update(document: pathlib.Path, text: str) -> None:
    """Replaces what is between the marker lines of the document."""
    block = re.compile(f"^{re.escape(BEGIN)}$.*?^{re.escape(END)}$", re.MULTILINE | re.DOTALL)
    before = document.read_text(encoding="utf-8")
    if len(block.findall(before)) != 1:
        raise InputError(f"{document}: needs the lines {BEGIN} and {END} once each, for the table between them")
    files.write(document, block.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", before))


if __name__ == "__main__":
    flags.main(run)
