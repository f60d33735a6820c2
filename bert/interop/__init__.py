"""Weights in and out of files of other programs; names/ has a table for each family, read in both directions."""
