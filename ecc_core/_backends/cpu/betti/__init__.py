"""Betti numbers on the CPU: forests over the minima of an image and of its complement."""

from ecc_core._backends.cpu.betti.flood import persistent_regions
from ecc_core._backends.cpu.betti.growth import component_curves
from ecc_core._backends.cpu.betti.launch import (
    betti_curves,
    exact_betti_curves,
    persistence_pairs,
)
from ecc_core._backends.cpu.betti.packing import pack_piece, unpack_piece
from ecc_core._backends.cpu.betti.pieces import betti_numbers_of, join_pieces, piece_of
from ecc_core._backends.cpu.betti.regions import region_betti_curves

__all__ = [
    "betti_curves",
    "betti_numbers_of",
    "component_curves",
    "exact_betti_curves",
    "join_pieces",
    "pack_piece",
    "persistence_pairs",
    "persistent_regions",
    "piece_of",
    "region_betti_curves",
    "unpack_piece",
]
