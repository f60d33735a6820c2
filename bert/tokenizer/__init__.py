"""Text -> token ids, with offsets into the text; reading and writing of tokenizers."""
