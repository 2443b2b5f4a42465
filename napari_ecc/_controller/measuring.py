"""Measurements of the objects of a Labels layer, and the columns of its table of features."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

import ecc_core as ecc
from napari_ecc._controller import uncompiled
from napari_ecc._controller.layers import (
    Part,
    Selection,
    fitting_level,
    matching_level,
    selection_of,
    snapshot,
)
from napari_ecc._controller.loading import is_prepared, kernel_of, load, prepared, warm
from napari_ecc._model.compare import Curves
from napari_ecc._model.regions import (
    ALSO,
    Basis,
    Components,
    Regions,
    feature_columns,
    is_own_column,
    principal_components,
)
from napari_ecc._workers import Job, Step

MOST_OBJECTS = 100_000
ESTIMATORS: dict[int, Any] = {2: "crofton-4", 3: "crofton-13"}
"""Estimators of Minkowski functionals, suited to smooth sets, by the number of axes."""
MOST_GAPS = 1000
"""Rows of labels without an object in a layer's features."""
CLASS = "class"
"""Column of the class that the user puts an object in."""


def frame_of(part: Part) -> int | None:
    """Return the frame of a part of a time series; None if it is not one."""
    places = [at for at in part if not isinstance(at, slice)]
    return places[0] if len(places) == 1 else None


def _levels(labels: Any, image: Any, part: Part) -> list[Selection]:
    """Return copies of the objects and of the image, because the user may paint on the layers."""
    selection = selection_of(labels, part)
    levels = [fitting_level(selection, labels.name)]
    if image is not None:
        levels.append(matching_level(labels, selection, levels[0], image))
    return [level._replace(levels=(snapshot(level.full),)) for level in levels]


def _check_objects(labels: NDArray[Any], name: str) -> None:
    if not labels.any():
        raise ValueError(f"“{name}” has no objects here.")


def _check_values(values: NDArray[Any], labels: NDArray[Any], image: Any, objects: Any) -> None:
    """Raise ValueError for values from which no curves of the objects can be computed.

    No curve counts a point without a value, and infinite values alone give no thresholds.
    """
    if values.dtype.kind != "f":
        return
    of_objects = values[labels != 0]
    if np.isnan(of_objects).any():
        raise ValueError(
            f"“{image.name}” has NaN within objects of “{objects.name}”: erase these points of the "
            "labels, or fill them."
        )
    if not np.isfinite(of_objects).any():
        raise ValueError(
            f"“{image.name}” has no finite values within objects of “{objects.name}”, so there are "
            "no thresholds."
        )


def curves_of_objects(
    labels: Any, image: Any, part: Part, thresholds: int, **sets: Any
) -> ecc.RegionCurves:
    """Return the curves of the objects of a part of a layer."""
    objects, values = (np.asarray(level.full) for level in _levels(labels, image, part))
    _check_objects(objects, labels.name)
    _check_values(values, objects, image, labels)
    return ecc.region_curves(values, objects, thresholds, **sets)


def named_curves(curves: ecc.RegionCurves, name: str, frame: int | None) -> Curves:
    """The curve of each object by a name: the layer's, the frame, and the label."""
    at = "" if frame is None else f" frame {frame}"
    return {f"{name}{at} {label}": curves.select(label) for label in curves.labels.tolist()}


def measure_job(
    labels: Any,
    image: Any = None,
    *,
    features: Any,
    part: Part,
    thresholds: int,
    directions: int,
    heights: int,
    superlevel: bool,
    connectivity: int | None,
    **also: bool,
) -> Job:
    """Return the job that measures the objects of layers in their current state.

    Curves and those of `ALSO` that are wanted come first, then transforms, then components. The
    value of the last step is a pair: a `Regions`, and `features` with those of its objects.
    """
    objects, *of_values = _levels(labels, image, part)
    if any(also.get(kind) and one.has_lengths for kind, one in ALSO.items()):
        objects.check_lengths()
    name = labels.name

    def compute() -> Iterator[Step]:
        found = yield from load(objects.full)
        _check_objects(found, name)
        curves = None
        of_image = found != 0
        levels = np.ones(1)
        sets: Any = {"superlevel": superlevel or not of_values, "connectivity": connectivity}
        if of_values:
            of_image = yield from load(of_values[0].full)
            _check_values(of_image, found, image, labels)
        by_kernels = _have_curves_by_kernels(found, of_image) or any(map(also.get, ALSO))
        measured = (of_values or [objects])[0].full
        if by_kernels:
            yield from prepared("objects", measured)
        else:
            warm(kernel_of("objects", measured))  # Later objects are measured by kernels.
        if of_values:
            of_regions = ecc.region_curves if by_kernels else uncompiled.region_curves
            curves = of_regions(of_image, found, thresholds, **sets)
            levels = curves.thresholds
        wanted = [kind for kind in ALSO if also.get(kind)]
        more = _curves_besides(wanted, of_image, found, levels, objects.spacing, sets)
        _check_number(found, name)
        yield Step(None, 1, 3)
        yield from prepared("shapes", found)
        transforms = ecc.region_transforms(
            found,
            directions,
            heights,
            connectivity=connectivity,
            spacing=objects.spacing,
            normalize="radius",
        )
        yield Step(None, 2, 3)
        components = _components_of(curves, transforms)
        regions = Regions(curves, more, transforms, components, objects.problem)
        columns = feature_columns(regions)
        yield Step((regions, merged(features, regions.labels, columns, frame_of(part))), 3, 3)

    return compute


def _curves_besides(
    wanted: list[str],
    image: NDArray[Any],
    objects: NDArray[Any],
    levels: NDArray[np.float64],
    spacing: Any,
    sets: dict[str, Any],
) -> dict[str, Any]:
    """Return the curves of those of `ALSO` that are wanted, by name."""
    lengths = {"spacing": spacing, "estimator": ESTIMATORS.get(objects.ndim)}
    found = {}
    for kind in wanted:
        options = sets | lengths if ALSO[kind].has_lengths else sets
        of_regions = getattr(ecc, ALSO[kind].of_regions)
        found[kind] = of_regions(image, objects, levels, **options)
    return found


def _check_number(objects: NDArray[Any], name: str) -> None:
    """Raise ValueError if there are more objects than are measured."""
    count = len(np.unique(objects)) - int(not objects.all())
    if count > MOST_OBJECTS:
        raise ValueError(f"“{name}” must have at most {MOST_OBJECTS:,} objects, got {count:,}")


def _components_of(
    curves: ecc.RegionCurves | None, transforms: ecc.RegionTransforms
) -> dict[Basis, Components]:
    """Return the principal components of curves, if there are any, and of transforms."""
    components: dict[Basis, Components] = {}
    if curves is not None:
        components["curves"] = principal_components(curves.values)
    rows = transforms.values.reshape(len(transforms.labels), -1)
    components["transforms"] = principal_components(rows)
    return components


def _have_curves_by_kernels(objects: NDArray[Any], image: NDArray[Any]) -> bool:
    """Whether kernels find the curves of objects, because they are ready or needed.

    The functions that call them refuse NaN and negative labels.
    """
    if is_prepared("objects", image) or not uncompiled.is_quick(image):
        return True
    if np.isnan(image).any() or (objects < 0).any():
        return True
    return not uncompiled.are_few(objects)


def merged(
    features: pd.DataFrame,
    labels: ArrayLike,
    columns: Mapping[str, ArrayLike],
    frame: int | None = None,
) -> pd.DataFrame:
    """Return a layer's features with columns for some labels, replacing those of the plugin.

    Row i of the features is that of label i, or of the label in the column ``index``, which the
    result has, increasing. With `frame`, of a time series, the rows get it as a column ``frame``,
    and those of other frames stay.
    """
    old = features
    others = features.iloc[:0]
    if frame is not None and "frame" in old.columns:
        others = old[old["frame"] != frame]
        old = old[old["frame"] == frame]
    old = old[[name for name in old.columns if name != "frame" and not is_own_column(name)]]
    if "index" in old.columns:
        old = old.set_index("index")
    new = pd.DataFrame(dict(columns), index=pd.Index(labels))
    table = old.join(new, how="outer") if old.shape[1] else new
    table = table.rename_axis("index").reset_index()
    if frame is None:
        return table
    table.insert(1, "frame", frame)
    if others.empty:
        return table
    return pd.concat([others, table]).sort_values(["frame", "index"], ignore_index=True)


def placed(table: pd.DataFrame) -> pd.DataFrame:
    """Return features of objects with a row for each label from 0 on, where napari looks for it.

    Those of labels without an object have no values. The table is returned as it is if there would
    be too many of them, of a time series, and where the column ``index`` has other than labels.
    """
    labels = table["index"]
    numbers = len(table) and labels.dtype.kind in "iu" and labels.is_unique and labels.min() >= 0
    if not numbers or "frame" in table or labels.max() >= len(table) + MOST_GAPS:
        return table
    every = pd.RangeIndex(labels.max() + 1, name="index")
    return table.set_index("index").reindex(every).reset_index()


def classified(
    features: pd.DataFrame, labels: ArrayLike, name: str, frame: int | None = None
) -> pd.DataFrame:
    """Return a layer's features with some objects put into a class; "" takes them out of theirs.

    A ValueError says that the objects have no rows.
    """
    table = features.copy()
    rows = _rows(table, labels, frame)
    if (rows < 0).any():
        raise ValueError("The features have no rows for these objects: measure again.")
    if CLASS not in table.columns:
        table[CLASS] = ""
    table.iloc[rows, table.columns.get_loc(CLASS)] = name
    return table


def classes_of(features: pd.DataFrame, labels: ArrayLike, frame: int | None = None) -> list[str]:
    """Return the class of each object, or ""."""
    if CLASS not in features.columns:
        return [""] * np.size(labels)
    classes = [*features[CLASS].astype(object).where(features[CLASS].notna(), "").astype(str), ""]
    return [classes[row] for row in _rows(features, labels, frame)]


def rows_of(
    features: pd.DataFrame, labels: ArrayLike, frame: int | None = None
) -> list[dict[str, Any]]:
    """Return the class and the columns not made by the plugin for each object."""
    table = features[[name for name in features.columns if not is_own_column(str(name))]]
    rows = table.to_dict("records")
    return [rows[at] if at >= 0 else {} for at in _rows(table, labels, frame)]


def _rows(table: pd.DataFrame, labels: ArrayLike, frame: int | None) -> NDArray[Any]:
    """Return the rows of labels in a table, or -1."""
    if "index" not in table.columns:
        return np.full(np.size(labels), -1)
    keys = table["index"]
    if frame is not None and "frame" in table.columns:
        keys = keys.where(table["frame"] == frame, -1)
    found = pd.Series(np.arange(len(table)), index=keys)
    found = found[~found.index.duplicated()]
    result: NDArray[Any] = found.reindex(np.asarray(labels), fill_value=-1).to_numpy()
    return result
