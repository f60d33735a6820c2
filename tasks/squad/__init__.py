"""Reading comprehension by the start and the end of one answer."""
