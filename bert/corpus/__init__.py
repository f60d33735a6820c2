"""Files of text -> documents -> sentences."""
