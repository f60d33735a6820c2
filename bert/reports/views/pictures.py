"""Classes of pictures: what the report shows of classes of texts."""

from bert.reports.views.classification import sections

__all__ = ["sections"]
