"""Nuclei found again by their outlines after a second segmentation.

    pip install --no-deps stardist
    python benchmarks/evidence/objects.py [--quick]

Writes benchmarks/results/evidence/objects.{json,md} and docs/images/evidence-objects.png. Of the
package only its data are used: an image of J. C. Caicedo et al., "Nucleus segmentation across
imaging experiments: the 2018 Data Science Bowl", Nature Methods 16 (2019), with the nuclei that
experts drew in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from morphology import Features, Labels, mosaic, radial_amplitudes, turned
from numpy.typing import NDArray
from outcome import BLUE, GRAY, QUIET, Outcome, Row, report
from scipy.ndimage import affine_transform, binary_dilation, binary_fill_holes, gaussian_filter
from skimage import io
from skimage.filters import threshold_otsu
from skimage.measure import find_contours, label, regionprops, regionprops_table
from trials import Trial, overlap_of, rows_of, trials

import ecc_core as ecc

QUESTION = """
Is a nucleus found again by its outline after it has been turned, rescaled and segmented anew?
"""
CONCLUSION = """
Rarely; transforms do no better than simple descriptors: region properties (0.20 and 0.19), Fourier
descriptors (0.22 and 0.19) and the radial profile find about one nucleus in five of 27, transforms
about one in nine (0.10 to 0.14), where guessing finds one in 27. No difference from the SECT is
significant at 5 %. Most nuclei are ellipses, which a few numbers describe; use those where shapes
are that simple.
"""
TEXT = """
The image of nuclei that comes with stardist, and the nuclei that experts drew in it, as far as a
window of 64 x 64 pixels around them is within the image. For a second segmentation, each nucleus is
turned by a random angle, rescaled by a factor between 0.8 and 1.25, overlaid with noise, smoothed
by a pixel, and cut by Otsu's threshold within 3 pixels around it. A nucleus is found again if, of
the outlines that experts drew of the nuclei in the test set, its own is the closest one. In each of
twenty repeats all nuclei are segmented anew; half of them train, a fifth validates and the rest
tests. The training set gives the unit of each feature, and the validation set chooses among no
units, the spread of the feature, and the spread of its change between the segmentations, and among
the numbers of directions and heights (16 x 32, 32 x 48, 64 x 64). No feature changes with the turn
or the size. ECT: heights in units of the region's radius; SECT: its smooth form; "turned": the
amplitudes of the Fourier transform over the directions. Fourier descriptors: 32 amplitudes of the
outline at an even speed. Radial profile: 32 amplitudes of the mean distance from the centroid in 64
sectors. Region properties: perimeter by root of area, eccentricity, solidity, Euler number and
7 moments of Hu; "Hu's moments" their logarithms alone. Shares are means with 95 % intervals, and
differences from the first row are paired by repeat, both with Nadeau and Bengio's correction for
overlapping divisions; p is not corrected for the number of comparisons.
"""
WINDOW = 64
"""Side of the window around each nucleus, in pixels."""
HARMONICS = 16
NOISES = 0.02, 0.1
"""In units of the contrast of a nucleus."""
AGAIN = "found again"
PROPERTIES = "eccentricity", "solidity", "euler_number", "moments_hu"

Masks = NDArray[np.bool_]
Table = NDArray[np.float64]


class Nucleus(NamedTuple):
    """A window of the image, and what the experts drew in it."""

    image: Table
    mask: Masks


def nuclei() -> list[Nucleus]:
    """Return the nuclei whose windows are within the image."""
    spec = find_spec("stardist")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pip install --no-deps stardist", name="stardist")
    images = Path(spec.origin).parent / "data" / "images"
    image, drawn = (io.imread(images / f"{name}2d.tif") for name in ("img", "mask"))
    found = []
    for region in regionprops(drawn):
        low = np.round(region.centroid).astype(int) - WINDOW // 2
        if (low < 0).any() or (low + WINDOW > image.shape).any():
            continue
        window = tuple(slice(start, start + WINDOW) for start in low)
        found.append(Nucleus(image[window].astype(float), drawn[window] == region.label))
    return found


def segmented_again(nucleus: Nucleus, noise: float, rng: np.random.Generator) -> Masks:
    """Return Otsu's set of the nucleus after it is turned, rescaled and noise is added."""
    angle = rng.uniform(0, 2 * np.pi)
    scale = rng.uniform(0.8, 1.25)
    cos = np.cos(angle) / scale
    sin = np.sin(angle) / scale
    matrix = np.array([[cos, -sin], [sin, cos]])
    centre = np.full(2, (WINDOW - 1) / 2)
    offset = centre - matrix @ centre
    image = affine_transform(nucleus.image, matrix, offset, order=1, mode="nearest")
    own = affine_transform(nucleus.mask.astype(float), matrix, offset, order=1) > 0.5
    contrast = image[own].mean() - image[~own].min()
    noisy = gaussian_filter(image + rng.normal(0, noise * contrast, image.shape), 1)
    around = binary_dilation(own, iterations=3)
    parts = label(around & (noisy > threshold_otsu(noisy[around])))
    largest = np.argmax(np.bincount(parts.ravel())[1:]) + 1
    return np.asarray(binary_fill_holes(parts == largest))


def transform(directions: int, heights: int, smooth: bool) -> Features:
    """Return a feature: amplitudes over the directions, which no turn of the object changes."""

    def compute(labels: Labels) -> Table:
        found = ecc.region_transforms(labels, directions, heights, normalize="radius", workers=1)
        return turned((ecc.smooth_transform(found) if smooth else found).values)

    return compute


def coefficients(mask: Masks, count: int = 256) -> NDArray[np.complex128]:
    """Return Fourier coefficients of the outline at an even speed, in units of the first one."""
    outline = max(find_contours(np.pad(mask, 1).astype(float), 0.5), key=len)
    points = outline[:, 1] + 1j * outline[:, 0]
    length = np.append(0, np.cumsum(np.abs(np.diff(points))))
    even = np.linspace(0, length[-1], count, endpoint=False)
    found = np.fft.fft(np.interp(even, length, points))
    return np.asarray(found / np.abs(found[[1, -1]]).max())


def outline_amplitudes(labels: Labels) -> Table:
    """Return the amplitudes of the outline's harmonics, which no turn, size or start changes."""
    chosen = np.r_[1 : HARMONICS + 1, -HARMONICS:0]
    masks = (region.image for region in regionprops(labels))
    amplitudes = [np.abs(coefficients(mask)) for mask in masks]
    return np.stack([of_outline[chosen] for of_outline in amplitudes])


def properties(labels: Labels) -> Table:
    """Return properties of regions that change neither with turns nor with the size."""
    table = regionprops_table(labels, properties=("area", "perimeter", *PROPERTIES))
    roundness = table.pop("perimeter") / np.sqrt(table.pop("area"))
    columns = [np.asarray(column, float) for column in table.values()]
    return np.stack([roundness, *columns], axis=1)


def log_moments(labels: Labels) -> Table:
    """Return logarithms of Hu's moments, whose sizes differ by many orders of magnitude."""
    table = regionprops_table(labels, properties=("moments_hu",))
    moments = np.stack(list(table.values()), axis=1)
    return np.asarray(np.sign(moments) * np.log(np.abs(moments) + 1e-12))


SIZES = (16, 32), (32, 48), (64, 64)
FEATURES: dict[str, dict[str, Features]] = {
    "SECT, turned": {f"{n} x {m}": transform(n, m, smooth=True) for n, m in SIZES},
    "ECT, turned": {f"{n} x {m}": transform(n, m, smooth=False) for n, m in SIZES},
    "Fourier descriptors": {"": outline_amplitudes},
    "radial profile": {"": radial_amplitudes},
    "region properties": {"": properties},
    "Hu's moments": {"": log_moments},
}


def scales(first: Table, second: Table) -> Iterator[Table]:
    """Yield units of features: none, their spread, and their differences the second time."""
    yield np.ones(first.shape[1])
    yield first.std(axis=0)
    yield (second - first).std(axis=0)


def found_again(first: Table, second: Table, objects: NDArray[np.int64], unit: Table) -> float:
    """Return the fraction of objects whose second segmentation is closest to their first one."""
    usable = unit > 1e-9 * max(float(unit.max()), 1e-300)
    known, asked = (part[objects][:, usable] / unit[usable] for part in (first, second))
    distances = np.linalg.norm(asked[:, None] - known, axis=-1)
    return float(np.mean(distances.argmin(axis=1) == np.arange(objects.size)))


def recognised(tables: Mapping[str, tuple[Table, Table]], trial: Trial) -> float:
    """Return the fraction of the test set, with the best setting and unit of the validation set."""
    best = -1.0
    chosen = 0.0
    for first, second in tables.values():
        for unit in scales(first[trial.training], second[trial.training]):
            share = found_again(first, second, trial.validation, unit)
            if share > best:
                best = share
                chosen = found_again(first, second, trial.test, unit)
    return chosen


def recognition(chosen: list[Nucleus], noise: float, count: int) -> list[Row]:
    """Return the shares of nuclei found again, over divisions and second segmentations."""
    known = mosaic(np.stack([nucleus.mask for nucleus in chosen]))
    first = {name: compute_all(settings, known) for name, settings in FEATURES.items()}
    scores: dict[str, list[float]] = {name: [] for name in FEATURES}
    divisions = trials(np.zeros(len(chosen), np.int64), count, seed=6)
    for trial, seed in zip(divisions, np.random.SeedSequence(7).spawn(count), strict=True):
        rng = np.random.default_rng(seed)
        again = [segmented_again(nucleus, noise, rng) for nucleus in chosen]
        asked = mosaic(np.stack(again))
        for name, settings in FEATURES.items():
            second = compute_all(settings, asked)
            tables = {setting: (first[name][setting], second[setting]) for setting in settings}
            scores[name].append(recognised(tables, trial))
    return rows_of(scores, next(iter(scores)), AGAIN, overlap_of(divisions[0]))


def compute_all(settings: dict[str, Features], labels: Labels) -> dict[str, Table]:
    return {setting: compute(labels) for setting, compute in settings.items()}


def run(quick: bool) -> Outcome:
    chosen = nuclei()
    count = 2 if quick else 20
    tables = {
        f"{len(chosen)} nuclei, noise of {noise:.0%} of their contrast": recognition(
            chosen, noise, count
        )
        for noise in NOISES
    }
    rng = np.random.default_rng(0)
    shown = [chosen[i] for i in rng.permutation(len(chosen))[:8]]
    masks = []
    for nucleus in shown:
        again = [segmented_again(nucleus, noise, rng) for noise in NOISES]
        masks.append((nucleus.mask, *again))
    return Outcome("Outlines of nuclei", TEXT, tables, {"masks": masks}, QUESTION, CONCLUSION)


def draw(outcome: Outcome) -> Figure:
    with plt.rc_context(QUIET):
        figure = Figure(figsize=(9, 4.4), layout="constrained")
        panels = figure.subplot_mosaic([["masks", "masks"], ["few", "much"]], height_ratios=[4, 5])
        strips = map(np.hstack, zip(*outcome.arrays["masks"], strict=True))
        panels["masks"].imshow(~np.concatenate(list(strips)), cmap="gray")
        panels["masks"].set_axis_off()
        panels["masks"].set_title("drawn by experts; segmented anew with little and more noise")
        for ax, (title, rows) in zip(
            (panels["few"], panels["much"]), outcome.tables.items(), strict=True
        ):
            names = [row["features"] for row in rows]
            means = [row[AGAIN]["mean"] for row in rows]
            reach = [row[AGAIN]["high"] - row[AGAIN]["mean"] for row in rows]
            colours = [BLUE if "ECT" in name else GRAY for name in names]
            ax.barh(names, means, 0.6, xerr=reach, color=colours, ecolor="#404040")
            ax.invert_yaxis()
            ax.set(
                xlim=(0, 1), xlabel="fraction of nuclei found again", title=title.partition(", ")[2]
            )
    return figure


if __name__ == "__main__":
    report("objects", run, draw)
