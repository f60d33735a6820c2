"""Readers and writers of bytes: safetensors, PyTorch files, TensorFlow checkpoints."""
