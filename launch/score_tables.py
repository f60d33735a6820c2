"""The tables at the end of fine-tuning: scores of the best evaluation, and of several seeds."""

import statistics

import jax

from bert.errors import printable
from bert.metric_names import is_count, is_note, title
from bert.training.evaluate import Metrics
from tasks.job import ExamplesJob
from tasks.metrics import constant_predictions


def show_seeds(runs: dict[int, Metrics], best: int, job: ExamplesJob) -> None:
    """Prints a row a metric and a column a seed; mean, standard deviation and the best; and how it was chosen."""
    titles = titles_of(runs[best], job)
    width = max(map(len, titles)) + 2
    seeds = "".join(f"{f'seed {seed}':>10}" for seed in runs)
    print("\n" + " " * width + seeds + f"{'mean':>10}{'sd':>10}{'best':>10}")
    for heading, name in titles.items():
        values = [scores.get(name) for scores in runs.values()]
        known = [value for value in values if value is not None]
        mean = f"{statistics.fmean(known):10.4f}" if known else f"{'':>10}"
        deviation = f"{statistics.stdev(known):10.4f}" if len(known) > 1 else f"{'':>10}"
        columns = "".join(shown(name, value) for value in values)
        print(f"{printable(heading):<{width}}" + columns + mean + deviation + shown(name, runs[best].get(name)))
    choice = job.choice
    assert choice is not None
    equal = [str(seed) for seed, scores in runs.items() if scores[choice.metric] == runs[best][choice.metric]]
    by = f", by the lowest {choice.loss} of those with equal {title(choice.metric, job.positive)}"
    print(f"best: seed {best}" + (f"{by} (seeds {', '.join(equal)})" if len(equal) > 1 else ""))
    for seed, scores in runs.items():
        if sentence := constant_predictions.sentence(scores, job.unit):
            print(f"seed {seed}: {sentence}")


def show_scores(best: Metrics, job: ExamplesJob, baseline: Metrics) -> None:
    """Prints the best evaluation, the baseline if there is one, and a note on a model that gives one answer only."""
    if jax.process_index() != 0 or not best:
        return
    titles = titles_of(best, job)
    width = max(map(len, titles)) + 2
    print("\n" + f"{'validation':<{width}}{'model':>10}" + (f"{'baseline':>10}" if baseline else ""))
    for heading, name in titles.items():
        beside = shown(name, baseline.get(name)) if baseline else ""
        print(f"{printable(heading):<{width}}{shown(name, best[name])}{beside}")
    if baseline:
        print(f"baseline: {job.compared_with}")
    if sentence := constant_predictions.sentence(best, job.unit):
        print(f"\n{sentence}: {constant_predictions.ADVICE}")


def titles_of(scores: Metrics, job: ExamplesJob) -> dict[str, str]:
    """Title of each metric -> its name; f1 and f1:LABEL may be the same, constant answers are no metric."""
    titles: dict[str, str] = {}
    for name in scores:
        if not is_note(name):
            titles.setdefault(title(name, job.positive), name)
    return titles


def shown(name: str, value: float | None) -> str:
    """A value as the end of a line, 10 characters or more; counts as whole numbers."""
    if value is None:
        return f"{'undefined':>10}"
    return f"{value:10,.0f}" if is_count(name) else f"{value:10.4f}"
