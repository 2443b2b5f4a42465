"""Small calls of every kind, to be run under compute-sanitizer.

    compute-sanitizer --tool memcheck python tests/gpu/sanitize.py [--share 0/8]
    compute-sanitizer --tool racecheck python tests/gpu/sanitize.py [--share 0/8]

Kernels take seconds to compile, so run the script once without the sanitizer first. `--share`
makes one share of the calls, so that several processes can run at a time, `--named` those of
some names, and `--most` as many of them, evenly spread: racecheck takes seconds for a call. The
results are not compared here, as the tests do that.

Arrays are made by NumPy, since every function of CuPy compiles kernels before the first call.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cupy as cp
import numpy as np
import torch

import ecc_core as ecc
from ecc_core.nn import (
    EulerCurveLayer,
    EulerCurveMap,
    EulerTransformLayer,
    PersistenceLoss,
    SimplicialTransformLayer,
)
from ecc_core.nn.functional import (
    soft_euler_curve,
    soft_euler_transform,
    soft_simplicial_transform,
)

SHAPES = {1: [(4100,)], 2: [(37, 140), (3, 300)], 3: [(5, 19, 132), (40, 35, 3)]}
RNG = np.random.default_rng(0)
DTYPES = ("bool", "uint8", "int8", "int16", "uint16", "float16", "int32", "float32", "float64")
Calls = Iterator[tuple[str, Callable[[], object]]]


def image_of(shape: tuple[int, ...], dtype: str) -> cp.ndarray:
    """Values from 0 to 1 of floats, and of integers over most of their range."""
    values = RNG.random(shape)
    if dtype == "bool":
        return cp.asarray(values < 0.5)
    if np.dtype(dtype).kind != "f":
        values *= min(np.iinfo(dtype).max, 4095)
    return cp.asarray(values.astype(dtype))


def thresholds_of(dtype: str) -> dict[str, np.ndarray]:
    """Thresholds of every kind that has a kernel or a table of its own."""
    top = 1.0 if np.dtype(dtype).kind in "fb" else min(np.iinfo(dtype).max, 4095)
    uniform = RNG.random(200)
    found = {
        "even": np.linspace(0, top, 256),
        "percentiles": np.sort(uniform) ** 2 * top,
        "clustered": np.sort(np.concatenate((uniform[:5], 0.5 + uniform * 1e-5))) * top,
        "4096": np.linspace(0, top, 4096),
        "9000": np.linspace(0, top, 9000),
    }
    return {"even": found["even"][::100]} if dtype == "bool" else found


def curves() -> Calls:
    """Euler curves of every dtype, layout, connectivity and kind of thresholds."""
    for ndim, shapes in SHAPES.items():
        for shape, dtype in itertools.product(shapes, DTYPES):
            image = image_of(shape, dtype)
            mask = image_of(shape, "bool")
            for (kind, at), c in itertools.product(thresholds_of(dtype).items(), sorted({1, ndim})):
                name = f"curve {shape} {dtype} {kind} {c}"
                curve = partial(ecc.euler_curve, thresholds=at, connectivity=c)
                yield name, partial(curve, image)
                if kind in ("even", "percentiles"):
                    views = {"reversed": image[::-1], "transposed": image.T}
                    for layout, view in (views | {"second": image[..., ::2]}).items():
                        yield f"{name} {layout}", partial(curve, view)
                    yield f"{name} mask", partial(curve, image, mask=mask)
            name = f"{shape} {dtype}"
            both = cp.asarray(np.stack([image.get(), image.get()]))
            curve = partial(ecc.euler_curve, image)
            yield f"default {name}", curve
            yield f"periodic {name}", partial(curve, 5, boundary="periodic")
            yield f"batch {name}", partial(ecc.euler_curve, both, 5, axis=range(1, both.ndim))
            yield f"exact {name}", partial(curve, "exact")
            yield f"direction {name}", partial(curve, 9, direction=np.eye(ndim)[0])
            yield f"coefficients {name}", partial(ecc.euler_coefficients, image)
            if dtype == "bool":
                yield f"number {name}", partial(ecc.euler_number, image)


def regions() -> Calls:
    """What is computed of label images, or of two images."""
    for ndim, shapes in SHAPES.items():
        for shape, dtype in itertools.product(shapes, ("uint8", "float32", "float64")):
            image = image_of(shape, dtype)
            other = image_of(shape, "float32")
            labels = cp.asarray(RNG.integers(0, 9, shape).astype("int32"))
            many = cp.asarray(np.arange(1, image.size + 1).reshape(shape))
            calls = {
                "regions": partial(ecc.region_curves, image, labels, 9),
                "many regions": partial(ecc.region_curves, image, many, 9),
                "region_minkowski": partial(ecc.region_minkowski, image, labels, 9),
                "minkowski 9": partial(ecc.minkowski_curves, image, 9),
                "minkowski 9000": partial(ecc.minkowski_curves, image, 9000),
                "betti": partial(ecc.betti_curves, image, 9),
                "pairs": partial(ecc.persistence_pairs, image),
                "lasting": partial(ecc.betti_curves, image, 9, min_persistence=0.1),
                "periodic betti": partial(ecc.betti_curves, image, 9, boundary="periodic"),
                "periodic pairs": partial(ecc.persistence_pairs, image, boundary="periodic"),
                "surface 9": partial(ecc.euler_surface, image, other, 9, 9),
                "surface 64": partial(ecc.euler_surface, image, other, 64, 64),
            }
            for (name, call), c in itertools.product(calls.items(), sorted({1, ndim})):
                yield f"{name} {shape} {dtype} {c}", partial(call, connectivity=c)


def transforms() -> Calls:
    """Transforms of masks, weights and label images."""
    for ndim in (2, 3):
        for shape in SHAPES[ndim]:
            mask = image_of(shape, "bool")
            weights = image_of(shape, "float32")
            counts = image_of(shape, "int16")
            labels = cp.asarray(RNG.integers(0, 9, shape))
            for heights, c in itertools.product((9, np.array([-3.0, 0, 0.5, 7]), 3000), (1, ndim)):
                name = f"transform {shape} {c} {np.size(heights)}"
                options = {"directions": 9, "heights": heights, "connectivity": c}
                yield f"{name} mask", partial(ecc.euler_transform, mask, **options)
                for image in (weights, counts):
                    call = partial(ecc.euler_transform, image, weighted=True, **options)
                    yield f"{name} {image.dtype}", call
                yield f"{name} labels", partial(ecc.region_transforms, labels, **options)


def soft() -> Calls:
    """Soft curves and transforms, with all gradients."""

    def curve(image: torch.Tensor, count: int, ndim: int) -> None:
        at = torch.linspace(0, 1, count, device="cuda", requires_grad=True)
        sharpness = torch.tensor(60.0, device="cuda", requires_grad=True)
        soft_euler_curve(image, at, sharpness=sharpness, n_spatial=ndim).square().sum().backward()

    def transform(image: torch.Tensor) -> None:
        directions = torch.eye(image.ndim - 1, device="cuda", requires_grad=True)
        at = torch.linspace(-9, 9, 7, device="cuda", requires_grad=True)
        numbers = {"sharpness": 3.0, "n_spatial": image.ndim - 1}
        curves = soft_euler_transform(image, directions, at, **numbers)
        curves.square().sum().backward()

    for shape in ((2, 20, 40), (2, 200, 300), (40, 8, 8), (2, 6, 20, 40), (1, 40, 50, 60)):
        for count in (5, 64, 300):
            image = torch.rand(shape, device="cuda", requires_grad=True)
            name = f"soft curve {shape} {count}"
            yield name, partial(curve, image, count, image.ndim - 1)
        yield f"soft transform {shape}", partial(transform, image)
    yield from layers()


def layers() -> Calls:
    """Layers whose steps are one function of autograd, and shapes of layers of complexes."""

    def step(layer: torch.nn.Module, *given: object) -> None:
        layer(*given).square().sum().backward()

    levels: dict[str, Any] = {"range": (0, 1), "device": "cuda"}
    made = (
        EulerCurveLayer(9, directions=3, direction_scale=0.1, **levels),
        EulerCurveMap(4, window=5, stride=3, **levels),
        EulerTransformLayer(5, 40, range=(-9, 9), device="cuda"),
    )
    for layer in made:
        image = torch.rand((3, 2, 17, 20), device="cuda", requires_grad=True)
        yield f"soft {type(layer).__name__}", partial(step, layer, image)
    shapes = SimplicialTransformLayer(35, 40, range=(-2, 2), device="cuda")
    for count in (40, 3000):
        points = torch.randn((count, 3), device="cuda", requires_grad=True)
        corners = torch.arange(count, device="cuda").unfold(0, 3, 1)
        yield f"soft shapes {count}", partial(step, shapes, points, [corners[:, :2], corners])


def objects() -> Calls:
    """What follows components, and losses of pairs."""
    for ndim, shapes in SHAPES.items():
        for shape, dtype in itertools.product(shapes, ("uint8", "float32")):
            image = image_of(shape, dtype)
            mask = image_of(shape, "bool")
            calls = {
                "component_curves": partial(ecc.component_curves, image, 9),
                "persistent_regions": partial(ecc.persistent_regions, image, 0.1),
                "persistent_regions cut": partial(
                    ecc.persistent_regions, image, 0.1, rel_height=0.5
                ),
                "persistent_regions mask": partial(ecc.persistent_regions, image, 0.1, mask=mask),
                "periodic component_curves": partial(
                    ecc.component_curves, image, 9, boundary="periodic"
                ),
                "periodic persistent_regions": partial(
                    ecc.persistent_regions, image, 0.1, boundary="periodic"
                ),
            }
            for (name, call), c in itertools.product(calls.items(), sorted({1, ndim})):
                yield f"{name} {shape} {dtype} {c}", partial(call, connectivity=c)

    def loss(ndim: int, images: torch.Tensor) -> None:
        images = images.requires_grad_()
        targets = torch.rand(images.shape, device="cuda") < 0.5
        PersistenceLoss(n_spatial=ndim)(images, targets).backward()

    for shape in ((8, 1, 130, 140), (1, 1, 400, 400)):
        images = torch.rand(shape, device="cuda")
        yield f"persistence loss {shape}", partial(loss, len(shape) - 2, images)


def meshes() -> Calls:
    """Curves and transforms of simplices, exact and soft."""
    for count, d in ((200, 2), (3000, 3)):
        points = cp.asarray(RNG.random((count, d)).astype("float32"))
        chosen = np.sort(RNG.integers(0, count, (2 * count, 3)), axis=1)
        triangles = np.unique(chosen[(np.diff(chosen, axis=1) > 0).all(axis=1)], axis=0)
        sides = [triangles[:, pair] for pair in ([0, 1], [0, 2], [1, 2])]
        corners = cp.asarray(triangles)
        edges = cp.asarray(np.unique(np.concatenate(sides), axis=0))
        heights = np.linspace(-1, 2, 17)
        name = f"simplices {count} {d}"
        directions = ecc.sample_directions(9, d)
        yield f"{name} curve", partial(ecc.simplicial_curve, points[:, 0], corners, heights)
        given = points, corners, directions, heights
        yield f"{name} transform", partial(ecc.simplicial_transform, *given)
        given = points, [edges, corners], directions, heights
        yield f"{name} planned transform", partial(ecc.simplicial_transform, *given)
        few = triangles[::6]  # Points have few neighbours.
        sides = [few[:, pair] for pair in ([0, 1], [0, 2], [1, 2])]
        edges = cp.asarray(np.unique(np.concatenate(sides), axis=0))
        given = points, [edges, cp.asarray(few)], directions, heights
        yield f"{name} known transform", partial(again, partial(ecc.simplicial_transform, *given))

        def soft_transform(tensor: torch.Tensor, corners: torch.Tensor, d: int) -> None:
            unit = torch.eye(d, device="cuda", requires_grad=True)
            at = torch.linspace(-1, 2, 7, device="cuda")
            found = soft_simplicial_transform(tensor, [corners], unit, at, sharpness=3.0)
            found.square().sum().backward()

        tensor = torch.as_tensor(points).clone().requires_grad_()
        yield f"{name} soft", partial(soft_transform, tensor, torch.as_tensor(corners), d)


def again(call: Callable[[], object]) -> None:
    """Call often enough for simplices to be known, which are then counted by stars."""
    for _ in range(4):
        call()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--named", nargs="*", default=[""], help="words of which names contain one")
    parser.add_argument("--most", type=int, default=1 << 30, help="how many calls at most")
    arguments = parser.parse_args()
    share, shares = map(int, arguments.share.split("/"))
    every = itertools.chain(curves(), regions(), transforms(), soft(), objects(), meshes())
    named = [(name, call) for name, call in every if any(word in name for word in arguments.named)]
    step = max(1, len(named) // arguments.most)
    calls = named[::step][: arguments.most][share::shares]
    for name, call in calls:
        call()
        cp.cuda.Device().synchronize()
        print(name, flush=True)
    print(f"{len(calls)} calls")


if __name__ == "__main__":
    main()
