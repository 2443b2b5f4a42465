"""Betti curves, persistence pairs, sizes of components and their regions, on a device."""

from ecc_core._backends.cuda.betti import betti_curves as betti_curves
from ecc_core._backends.cuda.betti import exact_betti_curves as exact_betti_curves
from ecc_core._backends.cuda.betti import persistence_pairs as persistence_pairs
from ecc_core._backends.cuda.component_sizes import component_curves as component_curves
from ecc_core._backends.cuda.flooding import persistent_regions as persistent_regions
from ecc_core._backends.cuda.region_betti import region_betti_curves as region_betti_curves
