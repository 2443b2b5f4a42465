"""From values to keys: the choice of an encoder, and its kernels."""
