"""Programs that compute the Euler characteristic curve, or the Euler number of a set, beside ours.

    pip install pyEulerCurves euchar
    python benchmarks/curve_peers.py [--classes PATH]

`--classes` is a Java class path with ImageJ, BoneJ's `Connectivity` and MorphoLibJ. Writes
benchmarks/results/curve_peers.{json,md}.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import euchar.curve
import euchar.utils
import numpy as np
from evidence.outcome import best_times, machine
from pages import rule
from pyEulerCurves import ECC_from_bitmap
from report import in_turns
from scipy.ndimage import gaussian_filter

import ecc_core as ecc

HERE = Path(__file__).parent
LEVELS = np.arange(256)
CUT = 128
"""The threshold of the one set that is given to the plugins of ImageJ."""
ABOUT = """uint8, 256 levels, one thread, smooth noise; all numbers are equal. The plugins of ImageJ
compute the Euler number of one set, so that a curve takes them 256 times as long as the time here;
ours is that of the whole curve. euchar is measured in 2-D: in 3-D it needs a table of 2^26 changes,
which it computes first. CHUNKYEuler is not measured: its source could not be obtained. GPU-ECC is
measured by cuda_gpu_ecc.py. BoneJ's number after its correction at the border equals the mean of
ours for boundary "half-open" over the eight mirror images of the volume.
"""
Row = dict[str, Any]


def smooth(shape: tuple[int, ...]) -> Any:
    field = gaussian_filter(np.random.default_rng(0).standard_normal(shape), 2)
    return np.interp(field, (field.min(), field.max()), (0, 255)).astype(np.uint8)


def by_euler_curves(image: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):  # The peer prints its progress.
        found = dict(ECC_from_bitmap().fit_transform(image.astype(float)))
    values = [found.get(level) for level in LEVELS]
    for level in range(1, 256):
        values[level] = values[level - 1] if values[level] is None else values[level]
    known = [0 if value is None else value for value in values]
    return np.array(known)


def row(image: Any, name: str, connectivity: int, ours: float, peer: float, sets: int) -> Row:
    return {
        "image": " x ".join(map(str, image.shape)),
        "program": name,
        "connectivity": connectivity,
        "sets": sets,
        "its ms": 1e3 * peer,
        "our curve, ms": 1e3 * ours,
        "ratio for a curve": peer * 256 / sets / ours,
    }


def curve_of(image: Any, connectivity: int) -> Callable[[], Any]:
    return lambda: ecc.euler_curve(image, LEVELS, connectivity=connectivity, workers=1).values


def python_peers(shape: tuple[int, ...]) -> list[Row]:
    image = smooth(shape)
    peers: dict[str, Callable[[], Any]] = {"pyEulerCurves": lambda: by_euler_curves(image)}
    if image.ndim == 2:
        changes = euchar.utils.vector_all_euler_changes_in_2D_images()
        numbers = image.astype(int)
        peers["euchar"] = lambda: euchar.curve.image_2D(numbers, changes)
    ours = curve_of(image, image.ndim)
    for name, peer in peers.items():
        np.testing.assert_array_equal(peer(), ours(), err_msg=name)
    best = best_times({"ours": ours}, 25)["ours"]
    took = in_turns(peers, 5)  # Wall time, because pyEulerCurves starts a process.
    return [
        row(image, name, connectivity=image.ndim, ours=best, peer=took[name].seconds, sets=256)
        for name in peers
    ]


def mean_over_mirrors(mask: Any) -> float:
    """Return BoneJ's number: half of each face and a quarter of each edge of the image count."""
    mirrored = [np.flip(mask, axes) for n in range(4) for axes in combinations(range(3), n)]
    numbers = [ecc.euler_number(one, boundary="half-open") for one in mirrored]
    return float(np.mean(numbers))


def java_peers(shape: tuple[int, ...], classes: str) -> list[Row]:
    image = smooth(shape)
    with tempfile.NamedTemporaryFile() as file:
        file.write((255 * (image <= CUT)).astype(np.uint8).tobytes())
        file.flush()
        options = ["java", "-XX:ActiveProcessorCount=1", "-cp", classes]
        call = [*options, HERE / "ImageJPeers.java", file.name, *map(str, shape)]
        printed = subprocess.run(call, check=True, capture_output=True, text=True).stdout
    rows = []
    for line in printed.splitlines():
        name, found, took = line.split("\t")
        connectivity = 1 if name.endswith(" 6") else 3
        ours = curve_of(image, connectivity)
        corrected = name.endswith("corrected")
        expected = mean_over_mirrors(image <= CUT) if corrected else ours()[CUT]
        assert float(found) == expected, (name, found, expected)
        best = best_times({"ours": ours}, 25)["ours"]
        rows.append(
            row(
                image,
                name.rstrip(" 26"),
                connectivity=connectivity,
                ours=best,
                peer=float(took) / 1e3,
                sets=1,
            )
        )
        print(line, expected)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--classes", help="Java class path of ImageJ, BoneJ and MorphoLibJ")
    classes = parser.parse_args().classes
    rows = [one for shape in [(512, 512), (64, 64, 64)] for one in python_peers(shape)]
    if classes:
        rows += java_peers((128, 128, 128), classes)
    where = machine()
    lines = ["# Programs that compute the same curve", "", ABOUT]
    lines += [f"| {' | '.join(rows[0])} |", rule(len(rows[0]))]
    for one in rows:
        cells = (f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in one.values())
        lines.append(f"| {' | '.join(cells)} |")
    facts = [f"{name} {value}" for name, value in where.items()]
    lines += ["", f"On: {', '.join(facts)}.", ""]
    (HERE / "results" / "curve_peers.md").write_text("\n".join(lines), encoding="utf-8")
    found = json.dumps({"rows": rows, "machine": where}, indent=1)
    (HERE / "results" / "curve_peers.json").write_text(found + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
