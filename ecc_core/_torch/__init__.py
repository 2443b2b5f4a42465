"""Differentiable curves and transforms as PyTorch operators."""
