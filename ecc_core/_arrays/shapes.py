"""The checked arguments of a transform of the shapes in an image or a label image in memory."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core import _directions
from ecc_core._arrays import given_on_host
from ecc_core._arrays.origin import Origin, origin_of
from ecc_core._request.boundary import Domain, boundary_of
from ecc_core._request.filtration import check_connectivity, check_spacing
from ecc_core._request.masks import split_masked
from ecc_core._request.options import ShapeOptions
from ecc_core._request.spatial_axes import warn_of_thin_volume
from ecc_core._request.thresholds import as_count
from ecc_core._request.transform import check_directions, parse_heights, spread_heights

Floats = NDArray[np.float64]
MOST_SAMPLED_AXES = 3  # Directions can be spread evenly over a circle and a sphere.


def unit_vectors(directions: Any, ndim: int) -> Floats:
    """Return the directions that are given, (k, ndim), or evenly spread ones if an int is."""
    count = as_count(directions, "directions")
    if count is None:
        return check_directions(given_on_host(directions), ndim)
    if ndim > MOST_SAMPLED_AXES:
        raise ValueError(
            f"`directions` must be vectors for points of {ndim} coordinates, got {count}"
        )
    return _directions.sample_directions(count, ndim)


class ShapeRequest(NamedTuple):
    """The checked arguments of a transform of shapes, as `Request` has those of images.

    `given` is an array for the backend's `numbers`. `shown` are the points of a masked array of
    NumPy that are not masked, or None. `heights` are None if they depend on the extent of the
    shapes; then `at` takes the extent and returns them.
    """

    origin: Origin
    given: Any
    shown: NDArray[Any] | None
    connectivity: int
    spacing: Floats
    directions: Floats
    heights: Floats | None
    height_count: int
    range: Any
    workers: int | None

    @classmethod
    def of(
        cls,
        image: Any,
        directions: Any,
        heights: Any,
        options: ShapeOptions,
        domain: Domain,
        *,
        name: str = "image",
    ) -> Self:
        """Check the arguments of a public function; `domain` says which boundaries it has."""
        image, shown = split_masked(image, None)
        origin = origin_of(image, name)
        array = origin.image(image, name)
        shape = tuple(array.shape)
        ndim = len(shape)
        if not 1 <= ndim <= 3:
            raise ValueError(f"`{name}` must have 1 to 3 axes, got shape {shape}")
        workers = origin.workers(options.workers)
        boundary_of(options.boundary, ndim, domain)
        connectivity = check_connectivity(options.connectivity, ndim)
        spacing = check_spacing(given_on_host(options.spacing), ndim)
        vectors = unit_vectors(directions, ndim)
        at, count = parse_heights(given_on_host(heights), options.range)
        return cls(
            origin=origin,
            given=array,
            shown=shown,
            connectivity=connectivity,
            spacing=spacing,
            directions=vectors,
            heights=at,
            height_count=count,
            range=options.range,
            workers=workers,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.given.shape)

    def at(self, reach: float | None) -> Floats:
        """Return the heights, by default from -`reach` to `reach` around the centre."""
        if self.heights is not None:
            return self.heights
        return spread_heights(self.height_count, self.range, reach)

    def warn_of_thin_volume(self, directions: Any, spacing: Any) -> None:
        """Warn if one of three axes is probably not spatial and no argument confirms that it is."""
        if spacing is None and as_count(directions, "directions") is not None:
            advice = "pass `spacing` if it is one, or each image by itself"
            warn_of_thin_volume(self.shape, advice)
