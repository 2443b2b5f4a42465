"""Soft curves: sums over points, and their gradients."""
