"""Reads and writes weights. formats/ has the file formats, names/ the tensor names of each family of models."""
