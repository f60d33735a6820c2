"""Names of tensors in the files of others: one table a family, read in both directions."""
