"""Betti numbers on the CPU: forests over the minima of an image and of its complement."""

from ecc_core._backends.cpu.betti import flood_boxes, mark_runs, pair_pieces, tunnel_pieces
from ecc_core._backends.cpu.betti import pieces as betti_pieces
from ecc_core._backends.cpu.betti import sizes as size_pieces
from ecc_core._backends.cpu.betti.flood import persistent_regions
from ecc_core._backends.cpu.betti.launch import (
    betti_curves,
    exact_betti_curves,
    persistence_pairs,
)
from ecc_core._backends.cpu.betti.matching import betti_matching
from ecc_core._backends.cpu.betti.regions import region_betti_curves
from ecc_core._backends.cpu.betti.sizes import component_curves

__all__ = [
    "betti_curves",
    "betti_matching",
    "betti_pieces",
    "component_curves",
    "exact_betti_curves",
    "flood_boxes",
    "mark_runs",
    "pair_pieces",
    "persistence_pairs",
    "persistent_regions",
    "region_betti_curves",
    "size_pieces",
    "tunnel_pieces",
]
