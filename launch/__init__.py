"""Commands: each file parses flags and calls the library."""
