"""A table of made-up reviews, and the fine-tuning command on it in seconds; for the tests of that command."""

import csv
import pathlib
import random

from launch import finetune

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
TINY = CHECKOUT / "tests" / "golden" / "tiny_bert"
GOOD, BAD = ["great", "good", "fun"], ["bad", "awful", "not"]
OTHER = ["the", "movie", "book", "a", "of", "city", "mat", "sat", "learning", "where", "who", "capital"]
QUICK = (
    "--config=configs/table.py",
    f"--config.init_from={TINY}",
    "--config.max_length=16",
    "--config.batch_size=16",
    "--config.optimizer.learning_rate=3e-3",
    "--config.model.hidden_dropout=0.0",
    "--config.model.attention_dropout=0.0",
    "--config.allocator=system",
    "--config.log_every=5",
    "--config.packed=False",  # one shape of batches: compiling is most of what these tests do
)


def reviews(count: int, seed: int) -> list[dict[str, str]]:
    """Rows of made-up words in which one word tells the label, "yes" or "no"."""
    rng = random.Random(seed)
    rows = []
    for i in range(count):
        words = rng.choices(OTHER, k=rng.randint(2, 9))
        words.insert(rng.randint(0, len(words)), rng.choice(GOOD if i % 2 else BAD))
        rows.append({"id": str(i), "review": " ".join(words), "liked": "yes" if i % 2 else "no"})
    return rows


def write(path: pathlib.Path, rows: list[dict[str, str]]) -> pathlib.Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def run(*words) -> None:
    finetune.run(["finetune", *map(str, words)])
