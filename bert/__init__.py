"""BERT in JAX: pretrain an encoder on your own text, fine-tune it, look inside it, carry weights in and out."""
