"""A folder of GLUE's tasks with a few made-up rows, in GLUE's own form."""

import pathlib
import random
from collections.abc import Sequence

from bench import glue_runs
from tasks.classification.glue_tasks import TASKS
from tests.launch.review_table import BAD, GOOD, OTHER


def write_glue(folder: pathlib.Path, tasks: Sequence[str], rows: int) -> pathlib.Path:
    """Training and dev parts of ``rows`` rows each; one word of the last text tells the label."""
    for task in tasks:
        known, rng = TASKS[task], random.Random(task)
        layout = known.layouts[0]
        (folder / known.folder).mkdir(parents=True)
        for split in ("train", *(column.split for column in glue_runs.columns_of(task))):
            lines = ["\t".join([*layout.text, layout.label])]
            for i in range(rows):
                texts = [" ".join(rng.choices(OTHER, k=rng.randint(2, 5))) for _ in layout.text]
                texts[-1] += f" {rng.choice(GOOD if i % 2 else BAD)}"
                written = list(known.written.values())
                lines.append(
                    "\t".join([*texts, written[i % len(written)] if written else str(4 * (i % 2) + 0.25 * (i % 3))])
                )
            (folder / known.folder / known.files[split][0][0]).write_text("\n".join([*lines, ""]))
    return folder
