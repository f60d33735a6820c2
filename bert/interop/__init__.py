"""Weights in and out of other people's formats. One table of names (names/bert.py) serves both directions."""
