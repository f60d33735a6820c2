"""Weights in and out of other people's formats. One table of names (weight_names.py) serves both directions."""
