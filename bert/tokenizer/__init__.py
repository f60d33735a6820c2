"""Tokenizers: text to token ids with offsets into the text. backends.py is the registry of tokenizers."""
