"""What is computed: the encoder, its heads, and the losses. Pure functions of parameters and a batch."""
