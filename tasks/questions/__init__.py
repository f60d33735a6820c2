"""Reads questions on passages, for bio_mrc and squad. questions.py chooses the format and the rows to keep."""
