"""Surfaces on the CPU: cells that enter at pairs of ranks."""
