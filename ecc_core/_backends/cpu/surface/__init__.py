"""Surfaces on the CPU, from the pairs of ranks at which cells enter."""
