"""Token ids to batches: pairs, masks, packing. NumPy only; batch i is a pure function of (store, settings, i)."""
