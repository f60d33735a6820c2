"""Scores of a model -> answers for people: what each kind of task needs besides weights. No files, no training."""
