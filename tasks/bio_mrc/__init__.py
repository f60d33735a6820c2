"""Reading comprehension by B/I/O tags, with the votes of several annotators."""
