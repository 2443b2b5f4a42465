"""Figures of all results. Requires matplotlib (extra io).

Figures are created without pyplot, so they need no display and leave no global state.
"""

from ecc_core.plotting._curves import (
    plot_betti_curves,
    plot_curve,
    plot_curves,
    plot_minkowski_curves,
)
from ecc_core.plotting._figures import COLUMN
from ecc_core.plotting._level_sets import THRESHOLD_COLOURS, plot_level_sets
from ecc_core.plotting._maps import (
    plot_surface,
    plot_transform,
    plot_transform_polar,
    plot_transforms,
)
from ecc_core.plotting._matching import plot_matching
from ecc_core.plotting._persistence import plot_barcode, plot_persistence

__all__ = [
    "COLUMN",
    "THRESHOLD_COLOURS",
    "plot_barcode",
    "plot_betti_curves",
    "plot_curve",
    "plot_curves",
    "plot_level_sets",
    "plot_matching",
    "plot_minkowski_curves",
    "plot_persistence",
    "plot_surface",
    "plot_transform",
    "plot_transform_polar",
    "plot_transforms",
]
