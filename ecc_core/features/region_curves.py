"""A scikit-learn transformer: curves of the regions of images as features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from ecc_core._io.geometry import check_place, check_scale
from ecc_core._io.open import open_image
from ecc_core._io.select import choose
from ecc_core._request.image import check_ids
from ecc_core.curves import region_curves
from ecc_core.features._images import ImageTransformer, is_path
from ecc_core.results import RegionCurves


class RegionCurvesTransformer(ImageTransformer):
    """Euler characteristic curves of the labelled regions of images as features.

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
    connectivity, superlevel, workers
        As for :func:`ecc_core.region_curves`.

    Attributes
    ----------
    ids_ : (k,) int64 array
        The labels of the regions.
    thresholds_ : (m,) array
        The thresholds.
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
        points to find `range`, and as for :func:`ecc_core.region_curves`. A note to the error names
        the pair.
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
    image_shape = None  # pairs have no flattened form

    def __init__(
        self,
        thresholds: int | ArrayLike = 64,
        *,
        ids: ArrayLike | None = None,
        missing: Literal["nan", "zero"] = "nan",
        range: tuple[float, float] | None = None,
        connectivity: int | None = None,
        superlevel: bool = False,
        workers: int | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.ids = ids
        self.missing = missing
        self.range = range
        self.connectivity = connectivity
        self.superlevel = superlevel
        self.workers = workers

    def _set(self, images: Iterable[Any]) -> None:
        if self.missing not in ("nan", "zero"):
            raise ValueError(f'`missing` must be "nan" or "zero", got {self.missing!r}')
        needs_range = self.range is None and np.ndim(self.thresholds) == 0
        ids: set[int] = set()
        ends: list[float] = []
        for found in self._results(images, 2 if needs_range else [], None):
            ids.update(found.labels.tolist())
            ends.extend(found.thresholds.tolist())
        bounds = (min(ends), max(ends)) if ends else self.range
        nowhere = np.zeros(1, np.uint8)
        self.thresholds_ = region_curves(nowhere, nowhere, self.thresholds, range=bounds).thresholds
        self.ids_ = check_ids(sorted(ids) if self.ids is None else self.ids, np.dtype(np.int64))

    def _result(self, image: Any, *at: Any) -> RegionCurves:
        image, labels = _read(image)
        return region_curves(image, labels, at[0] if np.any(labels) else [], **self._options())

    def _rows(self, found: RegionCurves) -> NDArray[Any]:
        lacking = np.full(len(self.thresholds_), np.nan if self.missing == "nan" else 0)
        curves = dict(zip(found.labels.tolist(), found.values, strict=True))
        rows = [curves.get(label, lacking) for label in self.ids_.tolist()]
        return np.array(rows, lacking.dtype).reshape(1, -1)

    def _images(self, X: Any, *, reset: bool) -> Iterable[Any]:
        """Return pairs of images and labels, or of their paths."""
        rows = X.to_numpy() if hasattr(X, "to_numpy") else X
        if isinstance(rows, list | tuple | np.ndarray) and len(rows) and _is_pair(rows[0]):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if reset:
                self.image_shape_ = None
            return rows
        images = super()._images(X, reset=reset)
        return ((image, np.ones(image.shape, np.uint8)) for image in images)

    def _names(self) -> list[str]:
        places = np.arange(len(self.thresholds_))
        return [f"region{label}_ecc{i}" for label in self.ids_ for i in places]


def _is_pair(row: Any) -> bool:
    """Whether a row consists of paths or is a tuple of arrays, rather than an image."""
    if not isinstance(row, list | tuple | np.ndarray) or not len(row):
        return False
    if isinstance(row, np.ndarray) and len(row) == 1:
        return False  # of a table with one column
    return is_path(row[0]) or (isinstance(row, tuple) and np.ndim(row[0]) > 0)


def _read(pair: Sequence[Any]) -> list[Any]:
    """Return an image and its labels, read where they are paths."""
    if len(pair) != 2:
        raise ValueError(f"`X` must have pairs of an image and its labels, got {len(pair)} parts")
    files = [open_image(part) if is_path(part) else None for part in pair]
    parts = [
        part if file is None else choose(file).read_all()
        for part, file in zip(pair, files, strict=True)
    ]
    image, labels = files
    if image and labels and image.shape == labels.shape:
        lengths = dict(zip(image.axes, image.shape, strict=True))
        name = f"the labels {labels.path}"
        check_place(name, labels.affine, image.affine, lengths)
        check_scale(name, labels.distances, image.distances, lengths)
    return parts
