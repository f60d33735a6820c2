"""Times pretraining steps on one GPU in bfloat16: ours, and transformers in PyTorch at its best; about eight minutes.

python -m bench.gpu --out=DIR [--sizes=base,large] [--lengths=128,512] [--tokens=32768] [--no-peer]
    [--attention=core,fused] [--dropout=0]

For each size and length: milliseconds per step, tokens per second, the share of the card's dense bf16 peak that the
step's necessary arithmetic reaches, and peak memory. The table goes to standard output and DIR/gpu.md, all numbers to
DIR/gpu.json. Fused attention has no dropout on attention weights, so compare it with other rows only under --dropout=0.
"""

import argparse
import json
import pathlib
import sys
from typing import Any

from bench.turns import Peer
from bench.work import Work
from bert.training.arithmetic import bf16_peak

BLOCKS, STEPS = 5, 10


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--out", type=pathlib.Path, required=True)
    flags.add_argument("--sizes", default="base,large")
    flags.add_argument("--lengths", default="128,512")
    flags.add_argument("--tokens", type=int, default=32768, help="tokens in a batch; half of that for large")
    flags.add_argument("--dtype", default="bfloat16")
    flags.add_argument("--dropout", type=float, default=0.1)
    flags.add_argument("--attention", default="core", help="ours: core, fused, or core,fused for a row each")
    flags.add_argument("--device", default="cuda", help="device of the peer")
    flags.add_argument("--no-peer", dest="peer", action="store_false")
    options = flags.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for size in options.sizes.split(","):
        for length in map(int, options.lengths.split(",")):
            tokens = options.tokens // (2 if size == "large" else 1)
            work = Work(size, max(1, tokens // length), length, options.dtype, options.dropout)
            rows += measure(work, options.attention.split(","), options.device if options.peer else "")
            (options.out / "gpu.json").write_text(json.dumps(rows, indent=1) + "\n")
            (options.out / "gpu.md").write_text(table(rows) + "\n")
    print(table(rows))


def measure(work: Work, attentions: list[str], device: str) -> list[dict[str, Any]]:
    """A row for each attention of ours and, if ``device`` is not empty, a row for the peer on that device.

    One after the other, because each needs the memory.
    """
    common = [f"--{name}={getattr(work, name)}" for name in ("size", "batch", "length", "dtype", "dropout")]
    ours = [sys.executable, "-m", "bench.ours", *common]
    commands = {f"ours {attention}": [*ours, f"--attention={attention}"] for attention in attentions}
    if device:
        peer = [sys.executable, "-m", "bench.torch_peer", *common, "--gather", "--compile", "--fused"]
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
        except RuntimeError as error:  # such as too little memory; the others continue
            rows.append(
                {"size": work.size, "length": work.length, "batch": work.batch, "name": name, "error": str(error)}
            )
            continue
        rows.append(measurements(work, peer_process))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def measurements(work: Work, peer: Peer) -> dict[str, Any]:
    peak = bf16_peak(peer.versions["device"])
    return {
        "size": work.size,
        "length": work.length,
        "batch": work.batch,
        "dtype": work.dtype,
        "dropout": work.dropout,
        **peer.versions,
        "step_ms": 1e3 * peer.median,
        "tokens_s": work.batch * work.length / peer.median,
        "tflops": work.flops / peer.median / 1e12,
        "of_peak": work.flops / peer.median / peak if peak else None,
        "peak_gib": peer.peak_bytes / 2**30,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| size | tokens | rows | | ms a step | tokens/s | TFLOP/s | of the peak | GiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        head = f"| {row['size']} | {row['length']} | {row['batch']} | {row['name']} |"
        if "error" in row:
            lines.append(f"{head} {row['error']} | | | | |")
            continue
        share = f"{row['of_peak']:.1%}" if row["of_peak"] else ""
        lines.append(
            f"{head} {row['step_ms']:.1f} | {row['tokens_s']:,.0f} | {row['tflops']:.1f} | {share} | "
            f"{row['peak_gib']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
