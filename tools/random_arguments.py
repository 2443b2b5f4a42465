"""Random calls of the public functions, each of which follows from a seed and its number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# Kernels are compiled for each dtype, which takes seconds. So only curves use all dtypes.
FEW_DTYPES = ("uint8", "uint8", "float32", "float32", "float64", "uint16")
DTYPES = (*FEW_DTYPES * 2, "bool", "int8", "int16", "int32", "int64", "uint32", "uint64")
DTYPES += ("float16", ">f4", ">u2")
LEVELS = (1, 2, 5, 9, 33, 256)
WRONG = 8  # One call of this many has an argument that is an error.


class Call(NamedTuple):
    """A call of a public function."""

    name: str
    function: Callable[..., Any]
    given: tuple[Any, ...]
    options: dict[str, Any]

    def __str__(self) -> str:
        given = ", ".join(shown(value) for value in self.given)
        options = ", ".join(f"{name}={shown(value)}" for name, value in self.options.items())
        return f"{self.name}({given}, {options})"


def shown(value: Any) -> str:
    """Return a short text of an argument."""
    if hasattr(value, "dtype") and hasattr(value, "shape") and np.prod(value.shape) > 12:
        return f"<{type(value).__name__} {value.dtype} {tuple(value.shape)}>"
    return repr(value)


class Generator:
    """Arguments of one call, which follow from its number and the seed."""

    def __init__(self, seed: int, number: int) -> None:
        self.random = np.random.default_rng([seed, number])

    def one_of(self, choices: Any) -> Any:
        """Return one of some choices."""
        return choices[int(self.random.integers(len(choices)))]

    def happens(self, probability: float) -> bool:
        """Return True with a probability."""
        return bool(self.random.random() < probability)

    def shape(self, ndim: int) -> tuple[int, ...]:
        """Return a small shape; some have axes of length 0 or 1, and some wide rows."""
        most = {1: 200, 2: 24, 3: 9}[ndim]
        shape = [int(n) for n in self.random.integers(1, most, ndim)]
        if self.happens(0.1):
            shape[-1] = int(self.random.integers(60, 140))
        if self.happens(0.03):
            shape[self.one_of(range(ndim))] = 0
        return tuple(shape)

    def image(self, shape: tuple[int, ...], dtype: str | None = None) -> np.ndarray:
        """Return an image of one of several kinds and layouts."""
        dtype = dtype or self.one_of(FEW_DTYPES)
        kind = self.one_of(("noise", "ties", "ties", "ramp", "wide"))
        unit = self.random.random(shape)
        if kind == "ramp" and unit.size:
            unit = sum(np.indices(shape)) / max(sum(shape), 1) + unit / 8
        if kind == "ties":
            unit = np.floor(unit * 5) / 5
        number = np.dtype(dtype)
        if number.kind == "b":
            image = unit > 0.5
        elif number.kind == "f":
            image = unit * (1000 if kind == "wide" else 1) - (0.5 if kind == "wide" else 0)
        else:
            bounds = np.iinfo(number)
            low, high = (bounds.min, bounds.max) if kind == "wide" else (0, 100)
            image = np.clip(unit * (float(high) - low) + low, low, np.nextafter(float(high), 0))
        image = image.astype(number)
        if number.kind == "f" and image.size and self.happens(0.15):
            specials = [np.inf, -np.inf, -0.0, 0.0]
            if self.happens(0.5):
                specials.append(np.nan)
            flat = image.reshape(-1)
            places = self.random.integers(0, image.size, 3)
            flat[places] = [self.one_of(specials) for _ in places]
        layout = self.one_of(("C", "C", "C", "F", "reversed", "steps"))
        if layout == "F":
            image = np.asfortranarray(image)
        elif layout == "reversed":
            image = image[..., ::-1]
        elif layout == "steps":
            image = np.repeat(image, 2, axis=-1)[..., ::2]
        return image

    def thresholds(self, image: np.ndarray, exact: bool = False) -> Any:
        """Return a number of thresholds, thresholds, or the word for exact curves."""
        kind = self.one_of(
            ("number", "number", "even", "values", "any", "exact" if exact else "any")
        )
        if kind == "number":
            return self.one_of(LEVELS)
        if kind == "exact":
            return "exact"
        count = self.one_of(LEVELS)
        finite = image[np.isfinite(image)] if image.dtype.kind == "f" else image.reshape(-1)
        low, high = (0.0, 1.0) if finite.size == 0 else (float(finite.min()), float(finite.max()))
        if kind == "even":
            return np.linspace(low, high, count)
        if kind == "values" and finite.size:
            return np.unique(finite)[:count]
        return np.sort(self.random.uniform(low - 1, high + 1, count))

    def filtration(self, shape: tuple[int, ...], ndim: int, names: set[str]) -> dict[str, Any]:
        """Return some of the options that the functions of images share."""
        options: dict[str, Any] = {}
        spatial = shape[len(shape) - ndim :]
        boundaries: list[Any] = ["closed", "periodic"]
        if "half-open" in names:
            boundaries.append("half-open")
        if self.happens(0.4):
            options["connectivity"] = self.one_of((1, ndim))
        if "superlevel" in names and self.happens(0.4):
            options["superlevel"] = True
        if "mask" in names and self.happens(0.3):
            options["mask"] = self.random.random(spatial) < 0.8
        if "nan" in names and self.happens(0.5):
            options["nan"] = "omit"
        if "boundary" in names and self.happens(0.4):
            one = self.one_of(boundaries)
            each = tuple(self.one_of(boundaries) for _ in range(ndim))
            options["boundary"] = self.one_of((one, each))
        if "axis" in names and (len(shape) > ndim or self.happens(0.1)):
            options["axis"] = tuple(range(len(shape) - ndim, len(shape)))
        if "workers" in names and self.happens(0.2):
            options["workers"] = self.one_of((1, 2))
        if "spacing" in names and self.happens(0.3):
            options["spacing"] = tuple(self.one_of((0.5, 1.0, 2.0)) for _ in range(ndim))
        if "range" in names and self.happens(0.1):
            options["range"] = (0.1, 0.9)
        if "min_persistence" in names and self.happens(0.3):
            options["min_persistence"] = self.one_of((0.2, 3))
        return options

    def spoil(self, options: dict[str, Any]) -> None:
        """Make one of the options an error, or an option that the function does not have."""
        wrong: dict[str, tuple[Any, ...]] = {
            "connectivity": (0, 2, 5, "two", 1.5),
            "boundary": ("open", ("closed",) * 4, ("periodic", "none"), 3),
            "mask": (np.ones((2, 2), bool), np.ones(3, np.float32), "mask"),
            "nan": ("ignore", None),
            "axis": (5, (0, 0), "x", (0, 1, 2, 3)),
            "workers": (0, -1, "all"),
            "spacing": (0, (1, -1), "um", (1, 1, 1, 1)),
            "range": ((1, 0), (0, np.nan), 3, (0, 1, 2)),
            "min_persistence": (-1, np.nan, "low"),
            "superlevel": ("yes", None, 2),
        }
        name = self.one_of(tuple(wrong))
        options[name] = self.one_of(wrong[name])


SHARED = {"superlevel", "mask", "nan", "boundary", "axis", "workers"}
CURVE = SHARED | {"range"}


def of_images(make: Generator, ecc: Any) -> Call:
    """Return a call of a function of one image."""
    ndim = make.one_of((1, 2, 2, 2, 3, 3))
    names = {
        "euler_number": {"boundary", "half-open"},
        "euler_curve": CURVE | {"half-open"},
        "betti_numbers": {"boundary"},
        "betti_curves": CURVE | {"min_persistence"},
        "component_curves": CURVE | {"spacing"},
        "minkowski_curves": CURVE | {"half-open", "spacing"},
        "persistence_pairs": SHARED | {"min_persistence"},
        "persistent_regions": SHARED,
        "euler_coefficients": {"superlevel", "mask", "nan"},
    }
    many = ("euler_curve",) * 6 + ("betti_curves",) * 3 + ("persistence_pairs",) * 3
    name = make.one_of((*many, *names))
    batch = (make.one_of((1, 3)),) if "axis" in names[name] and make.happens(0.15) else ()
    shape = (*batch, *make.shape(ndim))
    dtype = "bool" if name.endswith("numbers") or name == "euler_number" else None
    if name in ("euler_curve", "euler_coefficients"):
        dtype = make.one_of(DTYPES)
    image = make.image(shape, dtype)
    options = make.filtration(shape, ndim, names[name])
    given: list[Any] = [image]
    if name.endswith("curves") or name == "euler_curve":
        given.append(make.thresholds(image, exact=name in ("euler_curve", "betti_curves")))
    if name == "persistent_regions":
        given.append(make.one_of((0, 0.3, 5)))
        if make.happens(0.3):
            options["threshold"] = make.one_of((0.5, 50))
    if name == "persistence_pairs" and make.happens(0.4):
        options["dimension"] = make.one_of((0, 1, 2))
    if name == "euler_curve" and make.happens(0.15):
        options["direction"] = make.random.normal(size=ndim).tolist()
        options["direction_scale"] = make.one_of((0.1, 1.0))
        if make.happens(0.5):
            options["spacing"] = (2.0,) * ndim
    if name == "minkowski_curves" and make.happens(0.3):
        options["estimator"] = "crofton"
    if name == "component_curves" and make.happens(0.2):
        side = np.zeros(shape[len(shape) - ndim :], bool)
        side[:1] = True
        options["inlet"] = side
        options["outlet"] = side[::-1]
    return Call(name, getattr(ecc, name), tuple(given), options)


def of_regions(make: Generator, ecc: Any) -> Call:
    """Return a call of a function of an image and its labels."""
    ndim = make.one_of((2, 2, 3))
    shape = make.shape(ndim)
    image = make.image(shape)
    coarse = make.random.integers(0, 4, tuple(-(-n // 3) for n in shape))
    labels = coarse
    for axis in range(ndim):
        labels = np.repeat(labels, 3, axis=axis)
    labels = labels[tuple(slice(n) for n in shape)].astype(make.one_of(("int32", "uint8")))
    name = make.one_of(("region_curves", "region_betti_curves", "region_minkowski"))
    names = {"superlevel", "workers", "range"}
    if name != "region_betti_curves":
        names |= {"boundary", "half-open"}
    if name == "region_minkowski":
        names.add("spacing")
    elif name == "region_betti_curves":
        names.add("min_persistence")
    options = make.filtration(shape, ndim, names)
    return Call(name, getattr(ecc, name), (image, labels, make.thresholds(image)), options)


def of_shapes(make: Generator, ecc: Any) -> Call:
    """Return a call of a transform."""
    ndim = make.one_of((2, 3))
    shape = make.shape(ndim)
    options = make.filtration(shape, ndim, {"workers", "spacing", "range"})
    directions = make.one_of((4, 7, make.random.normal(size=(3, ndim))))
    heights = make.one_of((5, 16, np.linspace(-8, 8, 9)))
    if make.happens(0.4):
        labels = make.random.integers(0, 3, shape).astype("uint8")
        if make.happens(0.3):
            options["normalize"] = "radius"
        return Call(
            "region_transforms", ecc.region_transforms, (labels, directions, heights), options
        )
    options["weighted"] = make.happens(0.5)
    image = make.image(shape, None if options["weighted"] else "bool")
    return Call("euler_transform", ecc.euler_transform, (image, directions, heights), options)


def of_two_images(make: Generator, ecc: Any) -> Call:
    """Return a call of a function of two images."""
    ndim = make.one_of((2, 2, 3))
    shape = make.shape(ndim)
    dtype = make.one_of(("uint8", "float32"))
    images = (make.image(shape, dtype), make.image(shape, dtype))
    if make.happens(0.5):
        options = make.filtration(shape, ndim, {"superlevel", "mask", "nan", "workers"})
        return Call("betti_matching", ecc.betti_matching, images, options)
    options = make.filtration(shape, ndim, {"superlevel", "mask", "nan", "workers"})
    thresholds = (make.thresholds(images[0]), make.thresholds(images[1]))
    return Call("euler_surface", ecc.euler_surface, (*images, *thresholds), options)


def of_simplices(make: Generator, ecc: Any) -> Call:
    """Return a call of a function of a simplicial complex."""
    count = int(make.random.integers(4, 20))
    faces = make.random.permuted(np.tile(np.arange(count), (12, 1)), axis=1)[:, :3]
    options: dict[str, Any] = {"complete": make.happens(0.9)}
    values = make.random.random(count).astype(make.one_of(("float32", "float64")))
    name = make.one_of(("simplicial_curve", "simplicial_pairs", "simplicial_transform"))
    if name == "simplicial_transform":
        points = make.random.normal(size=(count, make.one_of((2, 3))))
        if make.happens(0.3):
            options["center"] = make.one_of(("mean", "box"))
        return Call(name, ecc.simplicial_transform, (points, faces, 5, 9), options)
    options["superlevel"] = make.happens(0.5)
    given = (values, faces) if name == "simplicial_pairs" else (values, faces, make.one_of(LEVELS))
    return Call(name, getattr(ecc, name), given, options)


def of_shards(make: Generator, ecc: Any) -> Call:
    """Return a call with a volume that is cut into runs of slices."""
    ndim = make.one_of((1, 2, 3))
    image = make.image(make.shape(ndim))
    cuts = np.sort(make.random.integers(0, len(image) + 1, 2))
    shards = np.split(image, cuts)
    options = make.filtration(image.shape, ndim, {"superlevel", "nan", "range"})
    thresholds = make.thresholds(image)
    return Call("euler_curve_shards", ecc.euler_curve_shards, (shards, thresholds), options)


def of_dask(make: Generator, ecc: Any) -> Call:
    """Return a call with blocks of dask, whose result is computed."""
    import dask.array

    ndim = make.one_of((2, 3))
    shape = tuple(max(n, 2) for n in make.shape(ndim))
    image = make.image(shape)
    chunks = tuple(int(make.random.integers(1, n + 1)) for n in shape)
    if np.prod([-(-n // size) for n, size in zip(shape, chunks, strict=True)]) > 12:
        chunks = shape
    blocks = dask.array.from_array(image, chunks=chunks)
    name = make.one_of(("euler_curve", "betti_curves", "minkowski_curves"))
    names = {"superlevel", "mask", "nan", "boundary", "range"}
    if name != "betti_curves":
        names.add("half-open")
    options = make.filtration(shape, ndim, names)
    function = getattr(ecc, name)

    def computed(*given: Any, **options: Any) -> Any:
        return dask.compute(*function(*given, **options), scheduler="sync")

    return Call(f"dask {name}", computed, (blocks, make.thresholds(image)), options)


def of_torch(make: Generator, ecc: Any) -> Call:
    """Return a call of the soft curves and layers of torch, with its gradient."""
    import torch

    from ecc_core import nn

    ndim = make.one_of((2, 3))
    shape = (2, 1, *(max(n, 1) for n in make.shape(ndim)))
    image = torch.from_numpy(make.image(shape, "float32").copy())
    image = torch.nan_to_num(image).requires_grad_()
    options: dict[str, Any] = {"n_spatial": ndim, "connectivity": make.one_of((None, 1, ndim))}
    name = make.one_of(("soft_euler_curve", "EulerCurveLoss", "PersistenceLoss", "exact"))
    if name == "exact":
        options = make.filtration(shape, ndim, {"superlevel"})
        options["axis"] = tuple(range(2, 2 + ndim))
        return Call("torch euler_curve", ecc.euler_curve, (image.detach(), 9), options)

    def differentiated(*given: Any, **options: Any) -> Any:
        if name == "soft_euler_curve":
            value = nn.functional.soft_euler_curve(*given, **options)
        else:
            value = getattr(nn, name)(**options)(given[0].sigmoid(), given[0].detach() > 0)
        value.sum().backward()
        return value.detach(), given[0].grad

    given: tuple[Any, ...] = (image,)
    if name == "soft_euler_curve":
        given = image, torch.linspace(0, 1, 7)
        options["sharpness"] = make.one_of((4.0, 50.0))
        options["superlevel"] = make.happens(0.5)
    return Call(name, differentiated, given, options)


KINDS: tuple[tuple[Callable[[Generator, Any], Call], int], ...] = (
    (of_images, 60),
    (of_regions, 12),
    (of_shapes, 8),
    (of_two_images, 6),
    (of_simplices, 5),
    (of_shards, 3),
    (of_dask, 2),
    (of_torch, 4),
)


def call_of(seed: int, number: int, ecc: Any) -> Call:
    """Return one call."""
    make = Generator(seed, number)
    kinds = [kind for kind, weight in KINDS for _ in range(weight)]
    call = make.one_of(kinds)(make, ecc)
    if make.happens(1 / WRONG):
        make.spoil(call.options)
    return call
