"""Persistence: births and deaths of classes, and the regions of lasting components."""

from ecc_core._request.boundary import COMPLEXES
from ecc_core.quantities._base import Function, Joins, Quantity
from ecc_core.results import PersistencePairs


class Persistence(Quantity):
    name = "persistence"
    position = 5
    boundaries = COMPLEXES
    joins = Joins("glue", boundaries=COMPLEXES, regions=False)
    result = PersistencePairs
    functions = (
        Function(
            "persistence_pairs",
            lazy=True,
            lazy_limit="one dimension at a time",
        ),
        Function("persistent_regions", lazy=True),
        Function("betti_matching", device="no"),
    )


PERSISTENCE = Persistence()
