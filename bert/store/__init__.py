"""Prepared tokens on disk: how they are made, written, checked and read."""
