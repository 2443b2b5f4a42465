"""A scikit-learn transformer: curves of the regions of images as features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from ecc_core._io.same_place import check_place, check_scale
from ecc_core._io.stored import StoredImage
from ecc_core._request.labels import check_ids
from ecc_core.features._images import ImageTransformer, image_noted
from ecc_core.features._preparation import (
    Channel,
    Preparation,
    file_named,
    is_path,
    labels_of,
    open_single,
)
from ecc_core.features._quantities import (
    function_of,
    names_of_features,
    options_of,
)


class RegionCurvesTransformer(ImageTransformer):
    """Euler characteristic curves of the labelled regions of images as features.

    With another `quantity`, the features are Betti numbers or Minkowski functionals.

    Every region is treated as if it stood alone. The same regions are the same features of all
    images, whether an image has them or not.

    Parameters
    ----------
    thresholds : int or (m,) array, default 64
        Number of thresholds, evenly spaced over `range`, or an increasing array of thresholds. All
        regions have the same.
    ids : (k,) array of int, optional
        The labels of the regions, in the order of the features. Other regions are left out.
        Default: all labels that occur in `fit`, increasing.
    missing : {"nan", "zero"}, default "nan"
        Features of a region that an image lacks: NaN, for an imputer or an estimator that takes
        missing values, or 0, which is the curve of the empty set.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and largest finite value of the
        labelled points in `fit`.
    channel, channel_axis, smooth
        As for :class:`EulerCurveTransformer`. Labels have no channels.
    quantity : str, default "euler"
        "euler", "betti" or "minkowski". Others than "euler" have several numbers at each threshold,
        in the order of their names: those of :func:`ecc_core.region_betti_curves` or
        :func:`ecc_core.region_minkowski`.
    min_persistence, spacing, estimator
        As for :class:`EulerCurveTransformer`.
    connectivity, superlevel, workers
        As for :func:`ecc_core.region_curves`.

    Attributes
    ----------
    ids_ : (k,) int64 array
        The labels of the regions.
    thresholds_ : (m,) array
        The thresholds.
    functionals_ : tuple of str
        As for :class:`EulerCurveTransformer`.
    image_shape_ : tuple of int or None
        Shape of one image; None for pairs of images and labels, whose shapes may differ.
    n_features_in_ : int
        2 for pairs; otherwise as for :class:`EulerCurveTransformer`.
    feature_names_in_ : array of str
        Names of the columns, if a data frame was given to `fit`.

    Raises
    ------
    TypeError, ValueError
        If `missing` is neither "nan" nor "zero", `ids` are not positive or contain duplicates, the
        header of a file says that labels lie elsewhere than their image, there are no labelled
        points to find `range`, for channels that images do not have, for a parameter of another
        quantity, and as for the functions of the quantity. A note to the error names the pair.
    ImportError, InputFileError
        If a file cannot be read, as for :func:`ecc_core.io.read_image`.

    See Also
    --------
    ecc_core.region_curves : the curves of the regions of one image

    Notes
    -----
    Images and labels are given as a list of tuples (image, labels), because a list can be split for
    cross-validation and its images may have different shapes. Both are arrays of the same shape or
    paths of files, which are read anew by each method, one pair at a time; a data frame with two
    columns of paths is such a list. Labels are integers, 0 outside the regions, or booleans for a
    mask, which is region 1. Images without labels, as for :class:`EulerCurveTransformer`, are
    region 1 as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import RegionCurvesTransformer
    >>> images = np.arange(24).reshape(2, 3, 4)
    >>> labels = np.array([[[1, 1, 0, 5]] * 3, [[1, 1, 1, 1]] * 3])
    >>> pairs = list(zip(images, labels))
    >>> transformer = RegionCurvesTransformer([0, 20]).fit(pairs)
    >>> transformer.transform(pairs)
    array([[ 1.,  1.,  0.,  1.],
           [ 0.,  1., nan, nan]])
    >>> transformer.get_feature_names_out()
    array(['region1_ecc0', 'region1_ecc1', 'region5_ecc0', 'region5_ecc1'], dtype=object)
    >>> RegionCurvesTransformer([20], ids=[5, 7], missing="zero").fit_transform(pairs)
    array([[1, 0],
           [0, 0]])
    """

    _passed = "connectivity", "superlevel", "workers"
    image_shape = None  # Pairs of images and labels cannot be flattened.

    def __init__(
        self,
        thresholds: int | ArrayLike = 64,
        *,
        ids: ArrayLike | None = None,
        missing: Literal["nan", "zero"] = "nan",
        range: tuple[float, float] | None = None,
        channel: Channel = None,
        channel_axis: int | None = None,
        smooth: float | Sequence[float] | None = None,
        quantity: str = "euler",
        min_persistence: float = 0,
        spacing: ArrayLike | None = None,
        estimator: str = "exact",
        connectivity: int | None = None,
        superlevel: bool = False,
        workers: int | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.ids = ids
        self.missing = missing
        self.range = range
        self.channel = channel
        self.channel_axis = channel_axis
        self.smooth = smooth
        self.quantity = quantity
        self.min_persistence = min_persistence
        self.spacing = spacing
        self.estimator = estimator
        self.connectivity = connectivity
        self.superlevel = superlevel
        self.workers = workers

    def _set(self, images: Iterable[Any]) -> None:
        if self.missing not in ("nan", "zero"):
            raise ValueError(f'`missing` must be "nan" or "zero", got {self.missing!r}')
        compute = function_of(self.quantity, of_regions=True)
        needs_range = self.range is None and np.ndim(self.thresholds) == 0
        ids: set[int] = set()
        ends: list[float] = []
        axes = 2
        for found in self._results(images, 2 if needs_range else [], None):
            ids.update(found.labels.tolist())
            ends.extend(found.thresholds.tolist())
            axes = found.ndim
        bounds = (min(ends), max(ends)) if ends else self.range
        nowhere = np.zeros((1,) * axes, np.uint8)
        checked = compute(nowhere, nowhere, self.thresholds, range=bounds)
        self.thresholds_ = checked.thresholds
        self.functionals_ = checked._functionals
        self.ids_ = check_ids(sorted(ids) if self.ids is None else self.ids, np.dtype(np.int64))

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), **options_of(self)}

    def _result(self, image: Any, *at: Any) -> Any:
        image, labels = image
        thresholds = at[0] if np.any(labels) else []
        compute = function_of(self.quantity, of_regions=True)
        return compute(image, labels, thresholds, **self._options())

    def _rows(self, found: Any) -> NDArray[Any]:
        if found._functionals != self.functionals_:
            raise ValueError(
                "`X` must have images of as many axes as those in `fit`, "
                f"with the numbers {self.functionals_}, got {found._functionals}"
            )
        size = len(self.functionals_) * len(self.thresholds_)
        dtype = np.dtype(np.float64) if self.missing == "nan" else found.values.dtype
        lacking = np.full(size, np.nan if self.missing == "nan" else 0, dtype)
        curves = dict(zip(found.labels.tolist(), found.values, strict=True))
        rows = [np.ravel(curves.get(label, lacking)) for label in self.ids_.tolist()]
        return np.array(rows, dtype).reshape(1, -1)

    def _images(self, X: Any, *, reset: bool) -> Iterable[Any]:
        """Return pairs of images and labels, which are read if they are paths."""
        rows = X.to_numpy() if hasattr(X, "to_numpy") else X
        if isinstance(rows, list | tuple | np.ndarray) and len(rows) and _is_pair(rows[0]):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if reset:
                self.image_shape_ = None
            return _Pairs([*rows], Preparation(self.channel, self.channel_axis, self.smooth))
        images = super()._images(X, reset=reset)
        return ((image, np.ones(image.shape, np.uint8)) for image in images)

    def _names(self) -> list[str]:
        names = names_of_features(self.functionals_, len(self.thresholds_))
        return [f"region{label}_{name}" for label in self.ids_ for name in names]


def _is_pair(row: Any) -> bool:
    """Whether a row consists of paths or is a tuple of arrays, rather than an image."""
    if not isinstance(row, list | tuple | np.ndarray) or not len(row):
        return False
    if isinstance(row, np.ndarray) and len(row) == 1:
        return False  # A row of a table with one column.
    return is_path(row[0]) or (isinstance(row, tuple) and np.ndim(row[0]) > 0)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of an image and its labels, each an array or the path of a file.

    Files are read in every iteration.
    """

    pairs: list[Sequence[Any]]
    preparation: Preparation

    @property
    def items(self) -> list[Any]:
        """The images, which identify pairs in errors."""
        return [pair[0] for pair in self.pairs]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for i, pair in enumerate(self.pairs):
            with image_noted(i, pair[0]):
                image, labels = _read(pair, self.preparation)
            yield image, labels


def _read(pair: Sequence[Any], preparation: Preparation) -> tuple[Any, Any]:
    """Return a preprocessed image and its labels, which are read if they are paths."""
    if len(pair) != 2:
        raise ValueError(f"`X` must have pairs of an image and its labels, got {len(pair)} parts")
    opened = [open_single(part) if is_path(part) else None for part in pair]
    image_file, labels_file = opened
    if image_file and labels_file:
        _check_places(image_file, labels_file)
    if image_file:
        with file_named(image_file.path):
            image = preparation.of_file(image_file)
    else:
        image = preparation.of(pair[0])
    labels = pair[1]
    if labels_file:
        with file_named(labels_file.path):
            labels = labels_of(labels_file)
    if np.shape(labels) == np.shape(image)[:-1]:
        raise ValueError(
            f"images must have the shape of their labels, {np.shape(labels)}, got "
            f"{np.shape(image)}; if the last axis are colours, choose one with `channel`"
        )
    return image, labels


def _check_places(image: StoredImage, labels: StoredImage) -> None:
    """Refuse labels with another place or spacing than their image."""
    lengths, of_labels = (
        {axis: n for axis, n in zip(file.axes, file.shape, strict=True) if axis in "ZYX"}
        for file in (image, labels)
    )
    if lengths == of_labels:
        name = f"the labels {labels.path}"
        check_place(name, labels.affine, image.affine, lengths)
        check_scale(name, labels.distances, image.distances, lengths)
