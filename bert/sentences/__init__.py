"""Vectors of texts: made in batches, compared, and searched. What they are made of: bert/model/sentence_encoder.py."""
