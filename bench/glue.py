"""Compares dev scores on GLUE tasks with transformers in PyTorch: same initial weights, recipe, rows and seeds.

python -m bench.glue --data=GLUE_FOLDER --init_from=DIR --out=FILE.jsonl [--tasks=sst2,mrpc,...] [--seeds=2]

Needs torch and transformers (`uv pip install torch`). Each run adds a line to the file; those that are already there
are skipped. The table is printed at the end.
"""

import importlib.util
import itertools
import pathlib
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.cells import CellFile
from bench.glue_runs import (
    BATCH,
    DECAY,
    EPOCHS,
    LENGTH,
    WARMUP,
    Scores,
    check_tasks,
    last_evaluation,
    sampled,
    settings,
)
from bert.errors import InputError
from launch import flags
from tasks.classification import job as classification_job
from tasks.classification.job import targets_of
from tasks.metrics import classification_metrics

OPTIONS = {
    "data": "folder with the folders of GLUE's tasks",
    "init_from": "model directory in Hugging Face layout that both start from",
    "out": "file with a JSON object a run",
    "tasks": "comma-separated names (default: sst2,mrpc,rte,cola,stsb)",
    "seeds": "runs of each task with seeds 0, 1, ... (default: 2)",
    "rows": "at most so many training rows of sst2 (default: 5000)",
}
RATE = 5e-5


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("data", "init_from", "out"))
    if not importlib.util.find_spec("torch"):
        raise InputError("torch is not installed; .venv/bin/uv pip install torch --torch-backend=cpu")
    names, start = options.names("tasks") or ("sst2", "mrpc", "rte", "cola", "stsb"), options.init_from
    check_tasks(names, options.data)
    seeds, limit = options.whole_number("seeds", 2), options.whole_number("rows", 5000)
    cells = CellFile(pathlib.Path(options.out), {"init_from": start, "rows": limit})
    sides = (("ours", ours), ("torch", theirs))
    with tempfile.TemporaryDirectory() as folder:
        for name, seed, (who, train) in itertools.product(names, range(seeds), sides):
            if cells.find(task=name, seed=seed, who=who):
                continue
            data = sampled(name, options.data, limit, pathlib.Path(folder)) if name == "sst2" else options.data
            started = time.perf_counter()
            scores = train(settings(name, data, start, seed, RATE), start, seed)
            seconds = time.perf_counter() - started
            print(cells.add({"task": name, "seed": seed, "who": who, "seconds": seconds, **scores}), flush=True)
    print(table(cells.cells))


def ours(words: Sequence[str], init_from: str, seed: int) -> Scores:
    with tempfile.TemporaryDirectory() as folder:
        return last_evaluation(words, f"{folder}/run")


def theirs(words: Sequence[str], init_from: str, seed: int) -> Scores:
    """The same recipe in PyTorch, as most people write it: padding to the longest of a batch, AdamW, linear decay."""
    import torch
    import transformers

    config, _ = flags.parse(["bench", *words], "", {}, config_file=None)
    job = classification_job.read(config)
    torch.manual_seed(seed)
    tokenizer = transformers.AutoTokenizer.from_pretrained(init_from)
    classes = 1 if job.options.kind == "number" else len(job.labels)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(init_from, num_labels=classes).train()
    groups = [
        {"params": [p for n, p in model.named_parameters() if _decays(n)], "weight_decay": DECAY},
        {"params": [p for n, p in model.named_parameters() if not _decays(n)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.999), eps=1e-6)
    texts, targets = job.train.texts, torch.tensor(targets_of(job.train))
    steps = -(-len(texts) // BATCH) * EPOCHS
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, round(WARMUP * steps), steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(texts)).tolist()
        for i in range(0, len(order), BATCH):
            chosen = order[i : i + BATCH]
            logits = model(**_inputs(tokenizer, [texts[k] for k in chosen])).logits
            if job.options.kind == "number":
                loss = torch.nn.functional.mse_loss(logits, targets[chosen])
            else:
                loss = torch.nn.functional.cross_entropy(logits, targets[chosen])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    held = job.validation
    assert held is not None
    model.eval()
    with torch.no_grad():
        parts = [
            model(**_inputs(tokenizer, held.texts[i : i + 64])).logits.double().numpy()
            for i in range(0, len(held.texts), 64)
        ]
    logits_NC = np.concatenate(parts)
    if job.options.kind == "class":
        logits_NC = np.exp(logits_NC - np.logaddexp.reduce(logits_NC, axis=-1, keepdims=True))
    scores = classification_metrics.score(
        job.names, targets_of(held), logits_NC, job.options.kind, held.labels, positive=job.positive
    )
    return {key: score.value for key, score in scores.items()}


def _decays(name: str) -> bool:
    return not name.endswith("bias") and "LayerNorm" not in name


def _inputs(tokenizer: Any, texts: list[tuple[str, ...]]) -> Any:
    sides = [[text[side] for text in texts] for side in range(len(texts[0]))]
    return tokenizer(*sides, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")


def table(all_runs: list[dict[str, Any]]) -> str:
    """Markdown: the first metric of each task, for us and for PyTorch: each seed, the mean, and seconds per run."""
    lines = [
        "| task | metric | ours | mean | s | PyTorch | mean | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in dict.fromkeys(run["task"] for run in all_runs):
        runs = {who: [r for r in all_runs if r["task"] == name and r["who"] == who] for who in ("ours", "torch")}
        metric = next(key for key in runs["ours"][0] if key not in ("task", "seed", "who", "seconds"))
        cells = [name, metric]
        for side in runs.values():
            values = [run[metric] for run in side if run[metric] is not None]
            mean = f"{statistics.fmean(values):.4f}" if values else "undefined"
            seconds = f"{statistics.fmean(run['seconds'] for run in side):.0f}" if side else ""
            cells += [", ".join(f"{value:.4f}" for value in values), mean, seconds]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    flags.main(run)
