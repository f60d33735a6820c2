"""File formats of weights: safetensors, PyTorch, TensorFlow checkpoints. weight_files.py registers the readers."""
