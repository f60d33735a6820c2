"""Which curves share a chart, and what is left of long ones."""

import numpy as np

from bert.reports import curves, runs
from tests.bert.reports.made_runs import SCORES, made_run


def test_the_validation_loss_stands_beside_the_training_loss(tmp_path):
    run = runs.read(made_run(tmp_path / "a", "classification", evaluation=SCORES), "a")
    charts = curves.curves_of([run])
    assert [(curve.split, curve.metric) for curve in charts["loss"]] == [
        ("train", "loss"),
        ("validation", "cross_entropy"),
    ]
    assert "f1" not in charts
    assert "f1:yes" in charts
    assert not {"n", "tokens", "skipped", "seconds_per_step", "peak_share"} & set(charts)
    assert next(iter(charts)) == "loss"
    assert list(charts)[-3:] == ["learning_rate", "gradient_norm", "tokens_per_second"]


def test_a_single_point_and_a_second_name_of_the_loss_make_no_chart(tmp_path):
    run = runs.read(made_run(tmp_path / "a", "classification"), "a")
    run.splits["train"]["cross_entropy"] = run.splits["train"]["loss"]
    run.splits["validation"] = {name: points[:1] for name, points in run.splits["validation"].items()}
    charts = curves.curves_of([run])
    assert {"loss", "gradient_norm"} <= set(charts)
    assert not {"cross_entropy", "accuracy", "f1:yes"} & set(charts)


def test_all_charts_have_the_same_steps(tmp_path):
    found = [runs.read(made_run(tmp_path / name, steps=steps), name) for name, steps in (("a", 40), ("b", 90))]
    axes = [chart.spec["encoding"]["x"]["scale"]["domain"] for chart in curves.charts(found)[0]]
    assert axes == [[2, 90]] * len(axes)


def test_long_curves_keep_their_extremes_and_their_gaps():
    rng = np.random.default_rng(0)
    values = rng.normal(size=100_000)
    points = [(i, float(v)) for i, v in enumerate(values)]
    points[70_000] = (70_000, None)
    thin = curves.thinned(points, 500)
    assert len(thin) <= 500
    assert thin[0] == points[0]
    assert thin[-1] == points[-1]
    assert thin == sorted(thin, key=lambda point: point[0])
    known = [value for _, value in thin if value is not None]
    assert (min(known), max(known)) == (values.min(), values.max())
    assert (70_000, None) in thin
    assert curves.thinned(points[:500], 500) == points[:500]


def test_steps_where_more_were_skipped_are_marked(tmp_path):
    run = runs.read(made_run(tmp_path / "a"), "a")
    assert curves.skipped_steps(run) == [22]
    made, _ = curves.charts([run])
    marked = {chart.title for chart in made if any("data" in layer for layer in chart.spec["layer"])}
    assert marked == {"loss", "gradient norm"}


def test_the_score_of_a_label_called_total_is_no_count(tmp_path):
    run = runs.read(made_run(tmp_path / "a", "tagging", held={"f1:total": 0.25, "total": 40}), "a")
    charts = curves.curves_of([run])
    assert "f1:total" in charts
    assert "total" not in charts
    assert curves.shown("f1:total", 0.25) == "0.2500"
    assert curves.shown("total", 40.0) == "40"
