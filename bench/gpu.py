"""Pretraining steps on one GPU in bfloat16: ours beside transformers in PyTorch at its best; sized for eight minutes.

python -m bench.gpu --out=DIR [--sizes=base,large] [--lengths=128,512] [--tokens=32768] [--no-peer]
    [--attention=core,fused] [--dropout=0]

For each size and length: milliseconds of a step, tokens a second, the share of the card's dense bf16 peak that the
step's own arithmetic makes, and peak memory; a table on standard output and in DIR/gpu.md, all numbers in DIR/gpu.json.
Fused attention has no dropout on attention weights: only under --dropout=0 is it the same work as the rows beside it.
"""

import argparse
import json
import pathlib
import sys

from bench.turns import Peer
from bench.work import Work
from bert.training.arithmetic import bf16_peak

BLOCKS, STEPS = 5, 10


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--out", type=pathlib.Path, required=True)
    flags.add_argument("--sizes", default="base,large")
    flags.add_argument("--lengths", default="128,512")
    flags.add_argument("--tokens", type=int, default=32768, help="of a batch; half of it for large")
    flags.add_argument("--dtype", default="bfloat16")
    flags.add_argument("--dropout", type=float, default=0.1)
    flags.add_argument("--attention", default="core", help="of ours: core, fused, or core,fused for a row of each")
    flags.add_argument("--device", default="cuda", help="of the peer")
    flags.add_argument("--no-peer", dest="peer", action="store_false")
    told = flags.parse_args()
    told.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for size in told.sizes.split(","):
        for length in map(int, told.lengths.split(",")):
            tokens = told.tokens // (2 if size == "large" else 1)
            work = Work(size, max(1, tokens // length), length, told.dtype, told.dropout)
            rows += measure(work, told.attention.split(","), told.device if told.peer else "")
            (told.out / "gpu.json").write_text(json.dumps(rows, indent=1) + "\n")
            (told.out / "gpu.md").write_text(table(rows) + "\n")
    print(table(rows))


def measure(work: Work, attentions: list[str], device: str) -> list[dict]:
    """A row for ours in each kind of attention and, where ``device`` names one, a row for the peer there.

    Not in turns, for each needs the memory.
    """
    given = [f"--{name}={getattr(work, name)}" for name in ("size", "batch", "length", "dtype", "dropout")]
    ours = [sys.executable, "-m", "bench.ours", *given]
    commands = {f"ours {attention}": [*ours, f"--attention={attention}"] for attention in attentions}
    if device:
        peer = [sys.executable, "-m", "bench.torch_peer", *given, "--gather", "--compile", "--fused"]
        commands["torch"] = [*peer, f"--device={device}"]
    rows = []
    for name, command in commands.items():
        try:
            peer_process = Peer(name, command)
            peer_process.run(2)
            peer_process.seconds.clear()
            for _ in range(BLOCKS):
                peer_process.run(STEPS)
            peer_process.stop()
        except RuntimeError as error:  # such as too little memory: the others are still worth their minutes
            rows.append(
                {"size": work.size, "length": work.length, "batch": work.batch, "name": name, "error": str(error)}
            )
            continue
        rows.append(row(work, peer_process))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def row(work: Work, peer: Peer) -> dict:
    peak = bf16_peak(peer.told["device"])
    return {
        "size": work.size,
        "length": work.length,
        "batch": work.batch,
        "dtype": work.dtype,
        "dropout": work.dropout,
        **peer.told,
        "step_ms": 1e3 * peer.median,
        "tokens_s": work.batch * work.length / peer.median,
        "tflops": work.flops / peer.median / 1e12,
        "of_peak": work.flops / peer.median / peak if peak else None,
        "peak_gib": peer.peak_bytes / 2**30,
    }


def table(rows: list[dict]) -> str:
    """Markdown."""
    lines = [
        "| size | tokens | rows | | ms a step | tokens/s | TFLOP/s | of the peak | GiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in rows:
        head = f"| {one['size']} | {one['length']} | {one['batch']} | {one['name']} |"
        if "error" in one:
            lines.append(f"{head} {one['error']} | | | | |")
            continue
        share = f"{one['of_peak']:.1%}" if one["of_peak"] else ""
        lines.append(
            f"{head} {one['step_ms']:.1f} | {one['tokens_s']:,.0f} | {one['tflops']:.1f} | {share} | "
            f"{one['peak_gib']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
