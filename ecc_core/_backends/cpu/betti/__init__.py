"""Betti numbers on the CPU: forests over the minima of an image and of its complement."""

from ecc_core._backends.cpu.betti.launch import (
    betti_curves,
    exact_betti_curves,
    persistence_pairs,
)
from ecc_core._backends.cpu.betti.regions import region_betti_curves

__all__ = ["betti_curves", "exact_betti_curves", "persistence_pairs", "region_betti_curves"]
