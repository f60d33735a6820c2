"""What can be trained: one file an architecture."""
