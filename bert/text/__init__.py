"""What people have (files of text) -> token ids on disk."""
