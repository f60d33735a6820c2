"""Classes of sentences and pairs, several labels at once, and numbers."""
