"""Translation of sentences, from pairs of a source and a target."""
