"""Metrics of labels, spans, entities and annotators."""
