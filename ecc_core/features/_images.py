"""The base class of transformers, and their images: arrays, lists of arrays, and files."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ecc_core._arrays.adapters.array_likes import check_array_like
from ecc_core._request.spatial_axes import looks_thin
from ecc_core.errors import warn_caller
from ecc_core.features._preparation import Channel, Preparation, is_path


@dataclass(frozen=True)
class ImageList:
    """Arrays or paths of files. Files are read in every iteration."""

    items: list[Any]
    prepare: Callable[[Any], NDArray[Any]]  # Reads and preprocesses an item.
    shape: tuple[int, ...] | None = None  # The shape that all images must have, if any.
    batched: bool = False  # Whether each image is a batch of one.

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for i, item in enumerate(self.items):
            with image_noted(i, item):
                array = self.prepare(item)
                _check_shape(array.shape, self.shape)
            yield array[None] if self.batched else array


class ImageTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features of images, or of rows of flattened images.

    A subclass defines the result of an image, the thresholds or heights of the results, and the
    features of a result.
    """

    _prefix: ClassVar[str]  # The prefix of the names of features.
    _negative: ClassVar[bool] = True  # Whether images can have negative values.
    _passed: ClassVar[tuple[str, ...]]  # Parameters that are passed to the function of an image.
    _colours: ClassVar[str] = "choose one of its colours with `channel`"
    """The advice in a warning of images that are taken for volumes but probably have colours."""
    channel: Channel = None
    channel_axis: int | None = None
    smooth: float | Sequence[float] | None = None
    image_shape: tuple[int, ...] | None
    image_shape_: tuple[int, ...] | None
    thresholds_: NDArray[Any]

    def _set(self, images: Iterable[Any]) -> None:
        """Set the thresholds, or the directions and heights, from images."""
        raise NotImplementedError

    def _at(self) -> tuple[NDArray[Any], ...]:
        """Return the thresholds, or the directions and heights."""
        return (self.thresholds_,)

    def _result(self, image: Any, *at: Any) -> Any:
        """Return the curves or the transform of an image. `at` ends with a range or None."""
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._passed}

    def _rows(self, found: Any) -> NDArray[Any]:
        """Return the features of a result, (1, m)."""
        result: NDArray[Any] = found.values.reshape(1, -1)
        return result

    def fit(self, X: Any, y: Any = None) -> Self:
        """Set the thresholds, or the directions and heights, at which features are computed.

        Parameters
        ----------
        X : (n, h), (n, h, w) or (n, h, w, d) array, or list
            Images, or rows of flattened images. In a list, images may have different shapes, or be
            paths of files, which are read one at a time by each method. A column of a data frame
            may hold such paths. Arrays have one more axis for channels if `channel` chooses one.
        y : ignored

        Returns
        -------
        self
        """
        self._set(self._images(X, reset=True))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Compute the features.

        Parameters
        ----------
        X : array or list
            As for `fit`. In an array, images must have the same shape as in `fit`.

        Returns
        -------
        (n, m) array
            int64, or float64 for Minkowski functionals, for means over regions, and where missing
            regions are NaN.
        """
        check_is_fitted(self)
        found = self._results(self._images(X, reset=False), *self._at(), None)
        return np.concatenate([self._rows(one) for one in found])

    def _results(self, images: Iterable[Any], *at: Any) -> Iterator[Any]:
        """Yield the result of each image."""
        for i, image in enumerate(images):
            with image_noted(i, item_of(images, i)):
                found = self._result(image, *at)
            yield found

    def _images(self, X: Any, *, reset: bool) -> Iterable[Any]:
        _check_images(X)
        items = _as_list(X)
        if items is not None:
            if self.image_shape is not None:
                raise ValueError(
                    f"`image_shape` must be None for a list of images, got {self.image_shape}"
                )
            if reset:
                self.image_shape_ = None
                # An earlier `fit` may have set these.
                self.__dict__.pop("n_features_in_", None)
                self.__dict__.pop("feature_names_in_", None)
            return ImageList(items, self._reader(reset=reset), self.image_shape_)
        array: NDArray[Any] = validate_data(
            self,
            X,
            reset=reset,
            allow_nd=True,
            dtype="numeric",
            ensure_non_negative=not self._negative,
        )
        if isinstance(X, np.ma.MaskedArray):
            array = np.ma.masked_array(array, np.ma.getmaskarray(X))
        if self.image_shape is not None:
            shape = tuple(self.image_shape)
            if array.ndim != 2 or math.prod(shape) != array.shape[1]:
                raise ValueError(
                    f"`image_shape` must fit the rows of `X`, got {shape} for shape {array.shape}"
                )
            array = array.reshape(-1, *shape)
        array = self._prepared(array)
        if reset:
            self.image_shape_ = array.shape[1:]
            self._warn_of_colours(self.image_shape_)
        else:
            _check_shape(array.shape[1:], self.image_shape_)
        return array

    def _prepare(self, item: Any) -> NDArray[Any]:
        """Return the image in an array or a file, preprocessed."""
        return Preparation(self.channel, self.channel_axis, self.smooth).of(item)

    def _prepared(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return a batch of images, preprocessed."""
        if self.channel is None and self.channel_axis is None and self.smooth is None:
            return images
        prepared = []
        for i, image in enumerate(images):
            with image_noted(i):
                prepared.append(self._prepare(image))
        stack = np.ma.stack if isinstance(images, np.ma.MaskedArray) else np.stack
        return stack(prepared)

    def _reader(self, *, reset: bool) -> Callable[[Any], NDArray[Any]]:
        """Return a function that reads the images of a list.

        In `fit`, it warns of the first image that probably has colours.
        """
        if not reset:
            return self._prepare
        warned = False

        def read(item: Any) -> NDArray[Any]:
            nonlocal warned
            image = self._prepare(item)
            if not warned:
                warned = self._warn_of_colours(image.shape)
            return image

        return read

    def _warn_of_colours(self, shape: tuple[int, ...]) -> bool:
        """Warn of an image that probably has colours; return whether it does."""
        if not looks_thin(shape):
            return False
        warn_caller(f"an image of `X`, of shape {shape}, is taken for a volume: {self._colours}")
        return True

    def _names(self) -> list[str]:
        count = math.prod(map(len, self._at()))
        return [f"{self._prefix}{i}" for i in range(count)]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the features: a prefix and a number.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        (m,) array of str
            Such as ``ecc0``, ``ecc1``, ... for curves, ``b0_0``, ``b0_1``, ..., ``b1_0``, ... for
            those of another quantity, ``region7_ecc0``, ... for the curves of regions, and
            ``ect0``, ``ect1``, ... for transforms.
        """
        check_is_fitted(self)
        return np.array(self._names(), dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = not self._negative
        tags.transformer_tags.preserves_dtype = []  # The dtype of features is not that of images.
        return tags


def _check_images(X: Any) -> None:
    """Refuse arguments without images, for which scikit-learn's own message would not help."""
    if is_path(X):
        raise ValueError(f"`X` must be a list of paths, got one: {X!r}")
    if X is None or (isinstance(X, list | tuple) and not X):
        raise ValueError(f"`X` must hold one image or more, got {X!r}")
    if isinstance(X, list | tuple):
        for row in X:
            if not is_path(row):
                check_array_like(row, "X")


def _as_list(X: Any) -> list[Any] | None:
    """Return images that are paths, masked, or of different shapes as a list, otherwise None."""
    rows = X.to_numpy() if hasattr(X, "to_numpy") else X
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "OU":
        rows = rows.ravel().tolist() if rows.ndim == 1 or rows.shape[1] == 1 else rows
    if not isinstance(rows, list | tuple) or not rows:
        return None
    if all(map(is_path, rows)):
        return [*rows]
    shapes = {getattr(row, "shape", None) for row in rows}
    is_ragged = len(shapes) > 1 and None not in shapes
    is_masked = any(isinstance(row, np.ma.MaskedArray) for row in rows)
    return [*rows] if is_ragged or is_masked else None


def _check_shape(shape: tuple[int, ...], expected: tuple[int, ...] | None) -> None:
    """Refuse an image of another shape than all images in `fit`."""
    if expected is not None and shape != expected:
        raise ValueError(f"`X` must have images of shape {expected}, as in `fit`, got {shape}")


def item_of(images: Iterable[Any], i: int) -> Any:
    """Return the array or path of an image of a list, None for other images."""
    items: Any = getattr(images, "items", None)
    return None if items is None else items[i]


@contextmanager
def image_noted(i: int, item: Any = None) -> Iterator[None]:
    """Add a note to errors with the number of the image, and its path if it is a file."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.add_note(f"in image {i} of `X`" + (f", {item}" if is_path(item) else ""))
        raise
