"""Transforms of masks, weights and regions."""
