"""Results of regions as AnnData tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import on_host
from ecc_core._optional import import_optional
from ecc_core._request.filtration import check_spacing
from ecc_core.results import columns

if TYPE_CHECKING:
    from anndata import AnnData


def to_anndata(
    regions: Any,
    label_image: ArrayLike | None = None,
    *,
    spacing: ArrayLike | None = None,
    element: str | None = None,
) -> AnnData:
    """Table of the curves or transforms of labelled regions for scanpy, squidpy and SpatialData.

    Parameters
    ----------
    regions : RegionCurves, RegionTransforms, RegionBettiCurves or RegionMinkowski
        Results of k regions. Arrays on a device are copied to the host.
    label_image : integer array, optional
        The labels that the regions were computed from, to add their centroids.
    spacing : float or (d,) array, optional
        Distance between neighbouring points along each axis, for the centroids. Default: 1.
    element : str, optional
        Name of the label image among the labels of a SpatialData object, to which the table is then
        linked as ``spatialdata.models.TableModel.parse`` does.

    Returns
    -------
    anndata.AnnData
        ``X`` has a row for each region and a column for each of its values. ``obs["label"]`` are
        the labels. ``var`` has the coordinates of the columns, such as ``threshold``, or
        ``direction`` (an index), ``direction_0``, ``direction_1`` and ``height``.
        ``obsm["spatial"]`` are the centroids in the order x, y (, z), if `label_image` is given.
        ``uns["ecc"]`` says how the values were computed.

    Raises
    ------
    TypeError
        If `regions` is not a result of labelled regions.
    ValueError
        If a label is not in `label_image`.
    ImportError
        If anndata is not installed.

    Notes
    -----
    With `element`, ``obs["region"]`` is its name, and ``uns["spatialdata_attrs"]`` links it and the
    column ``label`` to the label image.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.features import to_anndata
    >>> labels = np.array([[1, 1, 0], [0, 0, 2]])
    >>> regions = ecc.region_curves(labels * 3.0, labels, [3, 6])
    >>> table = to_anndata(regions, labels)  # doctest: +SKIP
    >>> table.X.tolist(), table.obsm["spatial"].tolist()  # doctest: +SKIP
    ([[1, 1], [0, 1]], [[0.5, 0.0], [2.0, 1.0]])
    """
    if "labels" not in getattr(regions, "_fields", ()):
        raise TypeError(
            f"`regions` must be a result of labelled regions, got a {type(regions).__name__}"
        )
    anndata = import_optional("anndata", extra="anndata", purpose="to_anndata")
    pandas = import_optional("pandas", extra="features", purpose="to_anndata")
    regions = regions.to_numpy()
    labels = regions.labels
    values = regions.values.reshape(len(labels), math.prod(regions.values.shape[1:]))
    obs = {"label": labels}
    if element is not None:
        obs["region"] = pandas.Categorical([element] * len(labels), categories=[element])
    one = regions._replace(labels=np.zeros(1), values=np.zeros((1, *regions.values.shape[1:])))
    var = {k: v for k, v in columns(one).items() if k not in ("label", one._quantity)}
    rows = pandas.DataFrame(obs, index=_names(labels.tolist()))
    variables = pandas.DataFrame(var, index=_names(range(values.shape[1])))
    table = anndata.AnnData(values, rows, variables)
    facts = {name: fact for name, fact in regions.facts.items() if fact is not None}
    plain = {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in facts.items()}
    table.uns["ecc"] = {"type": type(regions).__name__, **plain}
    if label_image is not None:
        table.obsm["spatial"] = _centroids(on_host(label_image), labels, spacing)
    if element is not None:
        table.uns["spatialdata_attrs"] = {
            "region": element,
            "region_key": "region",
            "instance_key": "label",
        }
    return table


def _names(numbers: Any) -> NDArray[np.object_]:
    return np.array([str(number) for number in numbers], dtype=object)


def _centroids(image: NDArray[Any], labels: NDArray[Any], spacing: Any) -> NDArray[np.float64]:
    """Return the mean coordinates of each label, (k, d), the last axis of the image first."""
    steps = check_spacing(spacing, image.ndim)
    points = np.nonzero(image)
    found, index, counts = np.unique(image[points], return_inverse=True, return_counts=True)
    missing = np.setdiff1d(labels, found)
    if missing.size:
        raise ValueError(f"`label_image` must contain all labels, {missing[0]} is missing")
    rows = np.searchsorted(found, labels)
    sums = [np.bincount(index, axis) * step for axis, step in zip(points, steps, strict=True)]
    return np.stack([(total / counts)[rows] for total in reversed(sums)], axis=1)
