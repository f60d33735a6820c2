"""Parts of models: attention, blocks, heads, losses. Pure functions of parameters and a batch."""
