"""People's tables and GLUE's files -> examples with targets; every fault is told by file and line."""
