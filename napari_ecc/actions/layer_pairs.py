"""Results of two layers together: surfaces, and the objects of a Labels layer in an image."""

import warnings

import pandas as pd
from napari.layers import Image, Labels

from ecc_core import BettiMatching, EulerCurve, EulerSurface
from napari_ecc._controller.channels import surface_job
from napari_ecc._controller.layers import Part, checked_part
from napari_ecc._controller.matching import match_job
from napari_ecc._controller.measuring import curves_of_objects, frame_of, measure_job, named_curves
from napari_ecc._model.regions import ALSO
from napari_ecc._workers import result


def layer_surface(
    first: Image | Labels,
    second: Image | Labels,
    *,
    part: Part | None = None,
    thresholds: int = 64,
    superlevel: tuple[bool, bool] = (True, True),
    connectivity: int | None = None,
) -> EulerSurface:
    """Euler characteristic of the points in both of two sets, at every pair of thresholds.

    Parameters
    ----------
    first, second : napari Image or Labels layer
        Layers of the same shape. The objects of a Labels layer are one set.
    part : tuple of (int or slice) or None, default None
        The part of the first layer that is meant; see `layer_curve`.
    thresholds : int, default 64
        The number of thresholds of each layer, evenly spaced over the range of its values. Those of
        integer images are integers, all of them where there are fewer.
    superlevel : (bool, bool), default (True, True)
        Whether the sets are those of values of at least the threshold.
    connectivity : {1, d} or None, default None
        See `layer_curve`.

    Returns
    -------
    EulerSurface

    Raises
    ------
    ValueError
        If a layer has no curve, or the layers differ in shape or lie apart.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image
    >>> from napari_ecc import actions
    >>> first, second = Image(np.eye(3), name="a"), Image(np.eye(3)[::-1], name="b")
    >>> actions.layer_surface(first, second, thresholds=2, connectivity=1).values.tolist()
    [[1, 3], [3, 1]]
    """
    job = surface_job(
        first,
        second,
        part=checked_part(first, part),
        thresholds=thresholds,
        superlevel=superlevel,
        connectivity=connectivity,
    )
    surface: EulerSurface
    surface, *_ = result(job())
    return surface


def object_curves(
    labels: Labels,
    image: Image,
    *,
    part: Part | None = None,
    thresholds: int = 32,
    superlevel: bool = True,
    connectivity: int | None = None,
) -> dict[str, EulerCurve]:
    """Euler characteristic curves of the objects of a Labels layer, by name.

    Parameters
    ----------
    labels, image, part, thresholds, superlevel, connectivity
        See `region_table`.

    Returns
    -------
    dict of str to EulerCurve
        Curves by the names of objects, as `compare_groups` and `curve_table` take them.

    Raises
    ------
    ValueError
        For the reasons of `region_table`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Image, Labels
    >>> from napari_ecc import actions
    >>> labels, image = Labels(np.diag([1, 2, 3]), name="cells"), Image(np.eye(3))
    >>> list(actions.object_curves(labels, image))
    ['cells 1', 'cells 2', 'cells 3']
    """
    part = checked_part(labels, part)
    found = curves_of_objects(
        labels, image, part, thresholds, superlevel=superlevel, connectivity=connectivity
    )
    return named_curves(found, labels.name, frame_of(part))


def region_table(
    labels: Labels,
    image: Image | None = None,
    *,
    part: Part | None = None,
    thresholds: int = 32,
    directions: int = 8,
    heights: int = 16,
    superlevel: bool = True,
    connectivity: int | None = None,
    **also: bool,
) -> pd.DataFrame:
    """Curves and transforms of the objects of a Labels layer, each as if it stood alone.

    Parameters
    ----------
    labels : napari Labels layer
    image : napari Image layer or None, default None
        The image of which curves are computed, of the same shape and at the same place. None: only
        the shapes are measured.
    part : tuple of (int or slice) or None, default None
        The part of the labels that is meant; see `layer_curve`.
    thresholds : int, default 32
        Columns of the curves.
    directions, heights : int, default 8 and 16
        Rows and columns of each transform; heights in radii of the object.
    superlevel, connectivity
        See `layer_curve`.
    betti, minkowski : bool, default False
        Also the Betti curves and the Minkowski functionals; without an image, the numbers of the
        objects themselves, such as ``b1_shape`` and ``area_shape``. The functionals are in world
        units, by Crofton's formula; see `ecc_core.minkowski_curves`.

    Returns
    -------
    DataFrame
        A row for each object, with its label in the column ``index``: ``ecc_t<threshold>``,
        ``b<dimension>_t<threshold>``, ``area_t<threshold>``, ``perimeter_t<threshold>`` (3-D:
        ``volume``, ``surface``, ``mean_breadth``), ``ect_d<direction>_h<height>``, and scores on
        principal components.

    Raises
    ------
    ValueError
        If the layers differ in shape or lie apart, there are no objects, or lengths are wanted of
        axes that are sheared or have units of different kinds.
    TypeError
        If something else is wanted than Betti curves or Minkowski functionals.

    Warns
    -----
    UserWarning
        If transforms are those of sheared axes, or of units of different kinds.
    """
    if unknown := also.keys() - ALSO.keys():
        raise TypeError(f"region_table() has no argument {min(unknown)!r}")
    job = measure_job(
        labels,
        image,
        features=pd.DataFrame(),
        part=checked_part(labels, part),
        thresholds=thresholds,
        directions=directions,
        heights=heights,
        superlevel=superlevel,
        connectivity=connectivity,
        **also,
    )
    regions, table = result(job())
    if regions.problem:
        warnings.warn(f"Shapes may be distorted: {regions.problem}", stacklevel=2)
    return table


def match_labels(
    prediction: Labels,
    target: Labels,
    *,
    part: Part | None = None,
    connectivity: int | None = None,
) -> BettiMatching:
    """Match the components, holes, tunnels and cavities of two Labels layers by their place.

    Parameters
    ----------
    prediction, target : napari Labels layers
        Layers of the same shape and at the same place. The objects of each are one set.
    part : tuple of (int or slice) or None, default None
        The part of the target that is meant; see `layer_curve`.
    connectivity : {1, d} or None, default None
        See `layer_curve`.

    Returns
    -------
    BettiMatching
        See `ecc_core.betti_matching`.

    Raises
    ------
    ValueError
        If the layers differ in shape or lie apart, have no objects, or are too large.

    Examples
    --------
    >>> import numpy as np
    >>> from napari.layers import Labels
    >>> from napari_ecc import actions
    >>> target = Labels(np.array([[1, 0, 2, 0, 3]]))
    >>> actions.match_labels(Labels(np.array([[1, 0, 0, 0, 1]])), target).error.tolist()
    [1, 0]
    """
    found = result(match_job(prediction, target, checked_part(target, part), connectivity)())
    matching: BettiMatching = found.matching
    return matching
