"""What is computed of the sets of an image or of its labelled regions, for commands and docks."""

from typing import Any, NamedTuple

from ecc_core.results._components import ComponentCurves
from ecc_core.results._curves import EulerCurve
from ecc_core.results._minkowski import MinkowskiCurves
from ecc_core.results._topology import BettiCurves


class Statistic(NamedTuple):
    """A kind of curves, and the names of the public functions that compute them."""

    title: str
    about: str  # what they consist of
    of_image: str
    of_regions: str  # "" if there is none
    result: Any  # type of the curves of an image
    columns: tuple[str, ...]  # names of the curves in tables
    with_euler: bool = True  # whether there is the Euler characteristic, too
    has_lengths: bool = False  # whether functions take `spacing` and `estimator`


STATISTICS = {
    "euler": Statistic(
        "Euler curves", "", "euler_curve", "region_curves", EulerCurve, ("euler_number",)
    ),
    "betti": Statistic(
        "Betti curves",
        "components, holes or tunnels, and cavities",
        "betti_curves",
        "region_betti_curves",
        BettiCurves,
        ("b0", "b1", "b2", "b3"),
    ),
    "minkowski": Statistic(
        "Minkowski functionals",
        "area and perimeter, or volume, surface and mean breadth, in world units",
        "minkowski_curves",
        "region_minkowski",
        MinkowskiCurves,
        ("length", "area", "perimeter", "volume", "surface", "mean_breadth"),
        has_lengths=True,
    ),
    "components": Statistic(
        "Component curves",
        "points, those of the largest component, and components that span each axis",
        "component_curves",
        "",
        ComponentCurves,
        ("points", "largest", "spanning_0", "spanning_1", "spanning_2"),
        with_euler=False,
    ),
}
