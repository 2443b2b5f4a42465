"""Differentiable curves and transforms, as operators of PyTorch."""
