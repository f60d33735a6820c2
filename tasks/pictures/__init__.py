"""Classes of pictures."""
