"""Metrics: pure functions of arrays, tags and texts; no files, no model. Each file has a table or says its names.

score.py: what a metric is, and how it is shown. weighted_metrics.METRICS: classifiers and numbers (rules and intervals:
classification_metrics.py; a line a class: class_table.py). entity_metrics.py: entities of tags. span_metrics.py:
answers as texts (SQuAD, MultiSpanQA). agreement.OF_VOTES and OF_ANNOTATORS: several annotators. A tagger's and a
bio_mrc model's names are in tasks/tagging/tag_scores.py and tasks/bio_mrc/bio_scores.py, squad's in squad_scores.py.
"""
