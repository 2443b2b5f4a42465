"""Jobs that compute curves, at once or block by block with intermediate results."""

import math
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from napari.layers import Image
from numpy.typing import NDArray

import ecc_core as ecc
from ecc_core.features import align_curves, descriptor_table
from ecc_core.io import IMAGE_SUFFIXES, open_image
from napari_ecc._controller import uncompiled
from napari_ecc._controller.fields import BLOCK_POINTS, Field, chunked
from napari_ecc._controller.layers import (
    Part,
    ReadMask,
    is_lazy,
    levels_of,
    problem_with,
    region_mask,
    selection_of,
    values_of,
)
from napari_ecc._controller.loading import as_completed, load, to_device
from napari_ecc._controller.places import axis_name
from napari_ecc._model.compare import Curves, joined
from napari_ecc._model.explorer import Curve, Stage
from napari_ecc._workers import Step

AT_ONCE = 1 << 26
"""Largest number of points of an array in memory whose curve is computed in one call."""
PREVIEW = 1 << 24
"""Largest number of points of a coarsest level that is loaded for a preview."""
SAMPLE = 1 << 20
"""Number of points of a large array in memory that are sampled for a preview."""
SPATIAL = "ZYX?"
"""Axes of files that are those of an image; nothing is known of the last one."""
NO_IMAGES = (".txt", ".img", ".raw", ".bin", ".dat", ".vol")
"""Suffixes of files in a folder that are mostly notes, or the values of a header beside them."""
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of a curve."""

    levels: tuple[Any, ...]
    """The selected data, the coarsest level first."""
    read_mask: ReadMask | None
    """Makes a mask of the shape of the finest level."""
    bounds: tuple[float, float] | None
    """Range of the thresholds; None: that of the values, which then are in memory."""
    thresholds: int
    """Their number."""
    superlevel: bool
    connectivity: int | None
    """None stands for d."""
    sigma: tuple[float, ...]
    """Widths of the smoothing, in points."""

    @property
    def kind(self) -> tuple[Any, ...] | None:
        """What the computing time depends on; None if data are read or a mask is drawn first."""
        full = self.levels[-1]
        if len(self.levels) > 1 or is_lazy(full) or self.read_mask is not None:
            return None
        sets = self.superlevel, self.connectivity, self.thresholds
        return (full.dtype, full.shape, full.flags.c_contiguous, any(self.sigma), *sets)

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `ecc_core.euler_curve`."""
        return {"connectivity": self.connectivity, "superlevel": self.superlevel, "nan": "omit"}


def request_of(
    layer: Any,
    part: Part,
    *,
    region: Any = None,
    thresholds: int = 256,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = True,
    smoothing: float = 0.0,
) -> Request:
    """Return the request for the curve of a part of a layer in its current state.

    The objects of a Labels layer are taken together, as one set. Options are those of
    `napari_ecc.actions.layer_curve`; a ValueError says why a region does not fit.
    """
    selection = selection_of(layer, part)
    if smoothing:
        selection.check_lengths()
    finest = float(selection.spacing.min())
    levels = values_of(layer, selection).levels
    dtype = levels[-1].dtype
    if range is None and dtype.kind == "b":
        range = 0.0, 1.0
    elif range is None and (len(levels) > 1 or is_lazy(levels[-1])):
        info = np.iinfo(dtype) if dtype.itemsize == 1 else None
        low, high = layer.contrast_limits_range if info is None else (info.min, info.max)
        range = float(low), float(high)
    return Request(
        levels=levels,
        read_mask=None if region is None else region_mask(layer, selection, region),
        bounds=range,
        thresholds=thresholds,
        superlevel=superlevel,
        connectivity=connectivity,
        sigma=tuple((smoothing * finest / selection.spacing).tolist()),
    )


class Progress:
    """The finished blocks of a curve, from which a cancelled job can be resumed."""

    def __init__(self) -> None:
        self.known: set[int] = set()
        """Positions of the blocks."""
        self.changes: Any = 0
        """The sum of their signed histograms."""


def compute_curve(
    request: Request, progress: Progress | None = None, *, compiled: bool = True
) -> Generator[Step, None, None]:
    """Compute the curve of a request, from where an earlier job has left its `progress`.

    That of a small image is found without kernels unless they are `compiled`. The value of a step
    is a pair: the `Curve` as far as it is known, and the `Field`, which is None until the curve is
    complete.
    """
    full = request.levels[-1]
    mask = None if request.read_mask is None else request.read_mask()
    progress = progress or Progress()
    at_once = not is_lazy(full) and full.size <= AT_ONCE
    # The preview and a resumed job must use the same thresholds.
    if request.bounds is None and not at_once:
        request = replace(request, bounds=Field(full, mask).range)
    preview = None
    if not progress.known:
        preview = _preview(request, mask, at_once, compiled=compiled)
    if preview is not None:
        yield Step((preview, None))
    if at_once:
        field = Field(_smoothed(np.asarray(full), request.sigma), mask)
        yield Step((_whole(field, request, compiled=compiled), field))
    else:
        yield from _by_blocks(request, mask, progress)


def field_of(request: Request) -> Generator[Step, None, Field]:
    """Load what a request is of, and smooth it if requested."""
    mask = None if request.read_mask is None else request.read_mask()
    image = yield from load(request.levels[-1])
    return Field(_smoothed(image, request.sigma), mask)


def result_of(curve: Curve, request: Request) -> ecc.EulerCurve:
    """Return a complete curve as a result of `ecc_core`."""
    ndim = len(request.sigma)
    return ecc.EulerCurve(
        curve.thresholds,
        curve.values,
        connectivity=request.connectivity or ndim,
        superlevel=request.superlevel,
        ndim=ndim,
    )


def frames_of(layer: Any, part: Part, axis: int = 0) -> dict[str, Part]:
    """Return the frames of a layer along an axis by name."""
    length = levels_of(layer)[0].shape[axis]
    parts = [(*part[:axis], frame, *part[axis + 1 :]) for frame in range(length)]
    width = len(str(length - 1))
    name = axis_name(layer, axis)
    return {f"{layer.name} {name} {k:0{width}}": at for k, at in enumerate(parts)}


def compute_curves(wanted: Mapping[Any, Request]) -> Iterator[Step]:
    """Compute the curve of each request; each step yields all curves found so far."""
    found: dict[Any, ecc.EulerCurve] = {}
    for name, request in wanted.items():
        for step in compute_curve(request):
            curve, _ = step.value
            if curve.complete:
                found[name] = result_of(curve, request)
            yield Step(dict(found), len(found), len(wanted))


def images_in(folder: Path) -> dict[str, Path]:
    """Return the images in a folder and the folders in it, by their paths below it."""
    names = ((path, path.name.lower()) for path in folder.rglob("*"))
    paths = sorted(
        path
        for path, name in names
        if name.endswith(IMAGE_SUFFIXES) and not name.endswith(NO_IMAGES)
    )
    arrays = {path for path in paths if path.is_dir()}
    return {
        path.relative_to(folder).as_posix(): path
        for path in paths
        if arrays.isdisjoint(path.parents)
    }


def compute_file_curves(files: Mapping[str, Path], **options: Any) -> Iterator[Step]:
    """Compute the curve of each image file, with the options of `request_of`.

    Each step yields all curves found so far. A ValueError at the end says which images failed.
    """
    found: dict[Any, ecc.EulerCurve] = {}
    failures: list[str] = []
    for done, (name, path) in enumerate(files.items(), 1):
        try:
            layer = _read_layer(path)
            wanted = request_of(layer, (slice(None),) * layer.ndim, **options)
            for step in compute_curves({name: wanted}):
                yield Step({**found, **step.value}, done - 1, len(files))
            found |= step.value
        except Exception as error:  # One image that fails must not cost the others.
            failures.append(f"{name}: {error}")
        yield Step(dict(found), done, len(files))
    if failures:
        raise ValueError(f"{len(failures)} of {len(files)} images failed: {'; '.join(failures)}")


def _read_layer(path: Path) -> Image:
    """Read an image file that has a curve."""
    stored = open_image(path)
    places = dict(zip(stored.axes, stored.shape, strict=True))
    if any(count > 1 for letter, count in places.items() if letter not in SPATIAL):
        raise ValueError(f"must have the axes Z, Y and X alone, got {stored.axes} {stored.shape}")
    axes = [letter for letter in stored.axes if letter in SPATIAL]
    index = [slice(None) if letter in axes else 0 for letter in stored.axes]
    scale = [stored.spacing.get(letter, 1.0) for letter in axes]
    layer = Image(stored[tuple(index)], rgb=False, scale=scale)
    if problem := problem_with(layer):
        raise ValueError(problem)
    return layer


def curve_table(curves: Curves, features: Any = None) -> pd.DataFrame:
    """Return a table of descriptors with a row for each curve.

    Parameters
    ----------
    curves : dict of str to EulerCurve
    features : DataFrame, or mapping of str to columns, optional
        What else is known of them, with their names in the column ``name``.

    Returns
    -------
    DataFrame
        The name, the features, descriptors (see `ecc_core.features.curve_descriptors`), and the
        values at the thresholds of all curves.

    Raises
    ------
    ValueError
        If `features` have no column ``name``, or several rows for one.
    """
    table = descriptor_table(curves)
    aligned = align_curves(list(curves.values()))
    names = [f"ecc_t{t:.6g}" for t in np.asarray(aligned.thresholds)]
    values = pd.DataFrame(np.asarray(aligned.values), index=table.index, columns=names)
    described = pd.concat([table, values], axis=1).rename_axis("name").reset_index()
    if features is None:
        return described
    return joined(described[["name"]], features).merge(described, on="name")


def _preview(
    request: Request, mask: Array | None, at_once: bool, *, compiled: bool
) -> Curve | None:
    """Return the curve of the coarsest level, or of a subsample; None if it would take as long."""
    image = request.levels[0]
    full = request.levels[-1]
    if len(request.levels) > 1:
        if math.prod(image.shape) > PREVIEW:
            return None
        image = np.asarray(image)
        if mask is not None:  # Each point takes the mask of its nearest neighbour.
            pairs = zip(image.shape, mask.shape, strict=True)
            nearest = [np.arange(n) * m // n for n, m in pairs]
            mask = mask[np.ix_(*nearest)]
    elif at_once or is_lazy(full):
        return None
    else:
        step = math.ceil((full.size / SAMPLE) ** (1 / full.ndim))
        every = (slice(None, None, step),) * full.ndim
        image = full[every]
        mask = None if mask is None else mask[every]
    sigma = np.array(request.sigma) * image.shape / full.shape
    smoothed = _smoothed(image, tuple(sigma.tolist()))
    return _whole(Field(smoothed, mask), request, "preview", compiled=compiled)


def _smoothed(array: Any, sigma: tuple[float, ...]) -> Any:
    """Smooth with a Gaussian in float32, or float64; blocks of a dask array overlap."""
    if not any(sigma):
        return array
    from scipy.ndimage import gaussian_filter

    # Values of float64 may be beyond those of float32.
    real = array.astype(np.float64 if array.dtype == np.float64 else np.float32, copy=False)
    if isinstance(array, np.ndarray):
        return gaussian_filter(real, sigma)
    depth = {axis: int(4 * s + 0.5) for axis, s in enumerate(sigma)}
    return real.map_overlap(gaussian_filter, depth=depth, boundary="reflect", sigma=sigma)


def _whole(
    field: Field, request: Request, stage: Stage = "complete", *, compiled: bool = True
) -> Curve:
    levels = field.levels(request.thresholds, request.bounds)
    if not compiled:
        values = uncompiled.euler_curve(
            field, levels, superlevel=request.superlevel, connectivity=request.connectivity
        )
        return Curve(levels, values, request.superlevel, stage)
    mask = None if field.mask is None else to_device(field.mask)
    image = to_device(field.data)
    axes = range(image.ndim)
    found = ecc.euler_curve(image, levels, mask=mask, axis=axes, **request.options)
    return Curve(levels, found.to_numpy().values, request.superlevel, stage)


def _by_blocks(request: Request, mask: Array | None, progress: Progress) -> Iterator[Step]:
    """Yield the curve of the blocks read so far, until all have been read."""
    from dask.array import Array as DaskArray

    from ecc_core.dask import euler_curve_blocks

    image = given = request.levels[-1]
    if not isinstance(image, DaskArray):
        rows = max(1, BLOCK_POINTS // math.prod(image.shape[1:]))
        image = chunked(image, (rows, *image.shape[1:]))
    smoothed = _smoothed(image, request.sigma)
    field = Field(smoothed if any(request.sigma) else given, mask)
    levels = field.levels(request.thresholds, request.bounds)
    blocks = euler_curve_blocks(smoothed, levels, mask=mask, **request.options)
    parts = blocks.to_delayed().ravel().tolist()
    missing = [place for place in range(len(parts)) if place not in progress.known]

    def step() -> Step:
        done = len(progress.known)
        changes = np.zeros(levels.size, np.int64) + progress.changes
        values = changes[::-1].cumsum()[::-1] if request.superlevel else changes.cumsum()
        stage: Stage = "complete" if done == len(parts) else "partial"
        curve = Curve(levels, values, request.superlevel, stage, done, len(parts))
        return Step((curve, field if curve.complete else None), done, len(parts))

    if not missing:
        yield step()
    for found in as_completed(parts[place] for place in missing):
        if found is not None:
            progress.changes = progress.changes + found[1].sum(axis=0)
            progress.known.add(missing[found[0]])
        yield step()
