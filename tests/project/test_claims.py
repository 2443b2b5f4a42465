"""What the texts say of times is what the committed results of the benchmarks say."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TOLERANCE = 1.25  # how far a rounded number may be from a measured one, as a factor


def sections(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["sections"]


def times_ours(results, section, other, connectivity, case=""):
    """How many times as long as ours another library takes."""
    found = [
        row["ratio"]
        for row in sections(results)[section]
        if row["ratio_of"].partition(" (")[0].removesuffix(" / time") == other
        and row["connectivity"] == connectivity
        and case in row["case"]
    ]
    assert found, (results, section, other)
    return found


def on_a_device(other):
    rows = json.loads((RESULTS / "cuda_peers.json").read_text(encoding="utf-8"))["rows"]
    return [
        row["ms"][other] / row["ms"]["ecc_core"]
        for row in rows
        if row["shape"] == [8192, 8192] and row["from"] == "device" and row["connectivity"] == 1
    ]


def kernels(quantity, *shapes):
    rows = json.loads((RESULTS / "cuda.json").read_text(encoding="utf-8"))["kernels"]
    return [
        row[quantity]
        for row in rows
        if tuple(row["shape"]) in shapes and row["dtype"] == "float32" and row["images"] == 1
    ]


def four_devices(volume, call):
    rows = json.loads((RESULTS / "cuda_stream.json").read_text(encoding="utf-8"))["rows"]
    times = {row["devices"]: row[f"shards_float32_{volume}"][call] for row in rows}
    return [times[1] / times[4]]


def betti_on_a_device():
    rows = json.loads((RESULTS / "cuda_betti.json").read_text(encoding="utf-8"))["rows"]
    return [row["device_ms"] / row["euler_ms"] for row in rows]


def weighted_on_a_device():
    rows = json.loads((RESULTS / "cuda_transform.json").read_text(encoding="utf-8"))["rows"]
    masks, weighted = (
        {
            (row["image"], row["connectivity"], row["of"]): row["ms"]
            for row in rows
            if row["shape"] == [512] * 3 and (row["of"] == "mask") == of_masks
        }
        for of_masks in (True, False)
    )
    return [ms / masks[image, c, "mask"] for (image, c, _), ms in weighted.items()]


def large_rate():
    large = json.loads((RESULTS / "cuda_stream.json").read_text(encoding="utf-8"))["large"]
    return [large["replay_ms"]]


def zarr_seconds():
    times = json.loads((RESULTS / "cuda_zarr.json").read_text(encoding="utf-8"))
    return [times["euler_curve, 2 devices"], times["euler_curve, 1 devices"], times["read"]]


def volume(other):
    return times_ours("cpu", "peers", other, 1, "128x128x128")


def errors_of_walls(score):
    path = RESULTS / "evidence" / "segmentation.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["tables"]["Cell walls"]
    return [
        row[score]["mean"] for row in rows if row["loss"] in {"cross entropy", "EulerCurveLoss"}
    ]


CLAIMS = {
    ("README.md", r"walls \(([\d.]+) instead of ([\d.]+) per image"): lambda: errors_of_walls(
        "errors"
    ),
    ("README.md", r"leave ([\d.]+) errors\s+instead of ([\d.]+):"): lambda: errors_of_walls(
        "errors, post-processed"
    ),
    ("README.md", r"NumPy (\d+)\u00d7, pyECT"): lambda: volume("numpy max + bincount"),
    ("README.md", r"pyECT (\d+)\u00d7, scikit-image"): lambda: volume("pyECT"),
    ("README.md", r"scikit-image \(one threshold at a time\) ([\d,]+)\u00d7"): lambda: volume(
        "scikit-image"
    ),
    ("README.md", r"cripser ([\d,]+)\u00d7"): lambda: volume("cripser"),
    ("README.md", r"GUDHI ([\d,]+)\u00d7 \("): lambda: volume("GUDHI"),
    ("README.md", r"\((\d+)\u00d7 on a 512² image"): lambda: times_ours(
        "libraries", "images", "GUDHI", 2
    ),
    ("README.md", r"pyECT ([\d,]+)\u00d7; eucalc"): lambda: times_ours(
        "transform-cpu", "peers", "pyECT", 1, "camera"
    ),
    ("README.md", r"height, ([\d,]+)\u00d7 \("): lambda: times_ours(
        "libraries", "transforms", "eucalc", 2
    ),
    ("README.md", r"\(([\d,]+)\u00d7 after its preparation"): lambda: times_ours(
        "libraries", "transforms", "eucalc, directions only", 2
    ),
    ("README.md", r"CuPy (\d+)\u00d7"): lambda: on_a_device("CuPy maxima + bincount"),
    ("README.md", r"pyECT (\d+) to (\d+)\u00d7, cucim"): lambda: on_a_device("pyECT"),
    ("README.md", r"cucim \(one threshold at a time\) ([\d,]+)\u00d7"): lambda: on_a_device(
        "cucim"
    ),
    ("README.md", r"([\d.]+) to ([\d.]+) ms \| [\d.]+ to [\d.]+ times the time to read"): lambda: (
        kernels("ms", (1024, 1024, 1024))
    ),
    ("README.md", r"([\d.]+) to ([\d.]+) times the time to read"): lambda: kernels(
        "ratio", (1024, 1024, 1024)
    ),
    ("README.md", r"on the device \| (\d+) to (\d+) µs"): lambda: [
        1e3 * ms for ms in kernels("ms", (128, 128), (256, 256), (512, 512))
    ],
    ("docs/benchmarks.md", r"takes (\d+) times as long as the curve on a photograph"): lambda: (
        times_ours("libraries", "images", "GUDHI", 2)
    ),
    ("docs/benchmarks.md", r"([\d,]+) times as long with this preparation"): lambda: times_ours(
        "libraries", "transforms", "eucalc", 2
    ),
    ("docs/benchmarks.md", r"and (\d+) times without"): lambda: times_ours(
        "libraries", "transforms", "eucalc, directions only", 2
    ),
    ("docs/gpu.md", r"therefore ([\d.]+) times as fast"): lambda: four_devices(
        "4096x2048x2048", "call_ms"
    ),
    ("docs/gpu.md", r"only ([\d.]+) times for 4 GiB"): lambda: four_devices(
        "1024x1024x1024", "call_ms"
    ),
    ("docs/gpu.md", r"factors of ([\d.]+) and"): lambda: four_devices(
        "4096x2048x2048", "replay_ms"
    ),
    ("docs/benchmarks.md", r"on an H200 (\d+) to (\d+) times"): betti_on_a_device,
    ("docs/benchmarks.md", r"Weighted transforms take (\d+) to (\d+) times"): lambda: [
        row["ratio"] for row in sections("transform-cpu")["weights"]
    ],
    ("docs/benchmarks.md", r"On an H200 they take (\d+) to (\d+) times"): weighted_on_a_device,
    ("docs/benchmarks.md", r"half of it on each\) in (\d+) ms"): large_rate,
    ("docs/gpu.md", r"(\d+) s on one H200 and on two, (\d+) s of which"): zarr_seconds,
    ("docs/design/surface.md", r"takes (\d+) to (\d+) times as long as a curve"): lambda: [
        row["ratio"]
        for rows in sections("surface").values()
        for row in rows
        if row["connectivity"] < 3
    ],
    ("docs/design/surface.md", r"and (\d+) to (\d+) times with connectivity 3"): lambda: [
        row["ratio"]
        for rows in sections("surface").values()
        for row in rows
        if row["connectivity"] == 3
    ],
}


@pytest.mark.parametrize(("page", "pattern"), CLAIMS)
def test_claim_is_measured(page, pattern):
    text = (ROOT / page).read_text(encoding="utf-8")
    said = re.search(pattern, text)
    assert said, f"{page} no longer says {pattern}"
    numbers = [float(number.replace(",", "")) for number in said.groups()]
    measured = CLAIMS[page, pattern]()
    assert min(numbers) / TOLERANCE < min(measured)
    assert max(measured) < max(numbers) * TOLERANCE
    if len(numbers) > 1:  # a range is as wide as the measurements are
        assert min(measured) < numbers[0] * TOLERANCE
        assert max(measured) > numbers[1] / TOLERANCE
