"""Metrics: pure functions of arrays, tags and texts; no files, no model.

Where a new metric goes:

- of classification or regression: `weighted_metrics.METRICS`. Intervals and definitions: classification_metrics.py.
  Scores per class: class_table.py.
- of tagged sentences: entity_metrics.py, and its name in tasks/tagging/tag_scores.py.
- of answer texts: span_metrics.py, and its name in tasks/squad/squad_scores.py or tasks/bio_mrc/bio_scores.py.
- against several annotators: `agreement.OF_VOTES` or `agreement.OF_ANNOTATORS`.

score.py has the type of a metric's value and its form in reports.
"""
