"""GPU-ECC (Wang, Wagner, Chen, SoCG 2022) beside the curve of ours, on a CUDA device.

    pip install gpuecc-0.1.0-cp312-cp312-linux_x86_64.whl  # of TopoXLab/GPU_ECC_SoCG2022
    python -m benchmarks.cuda_gpu_ecc

The wheel needs CUDA 12's libcudart.so.12 on LD_LIBRARY_PATH. Writes
benchmarks/results/cuda_gpu_ecc.json. Both begin with a NumPy array of float32 in host memory and
end with a curve there; ours is also given the thresholds, the 256 values that occur.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cupy
import gpuecc
import numpy as np
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from benchmarks.pages import cuda_device
from benchmarks.report import in_turns

LEVELS = np.arange(256, dtype=np.float32)
SHAPES = (512, 512), (2048, 2048), (128, 128, 128), (256, 256, 256)


def image_of(shape: tuple[int, ...]) -> Any:
    field = gaussian_filter(np.random.default_rng(0).standard_normal(shape), 2)
    return np.interp(field, (field.min(), field.max()), (0, 255)).round().astype(np.float32)


def measure(shape: tuple[int, ...]) -> dict[str, Any]:
    image = image_of(shape)
    on_device = cupy.asarray(image)
    peer = gpuecc.GPUECC(*shape, *([0] if image.ndim == 2 else []))

    def resident() -> Any:
        found = ecc.euler_curve(on_device, LEVELS).values
        cupy.cuda.Device().synchronize()
        return found

    def ours() -> Any:
        curve = ecc.euler_curve(cupy.asarray(image), LEVELS)
        return curve.values.get()

    calls = {
        "GPU-ECC": lambda: peer.run_frmArr(image.ravel()),
        "ours": ours,
        "ours, on the device": resident,
    }
    found = {name: call() for name, call in calls.items()}
    at, values = np.asarray(found["GPU-ECC"]).T
    levels = at.astype(np.float32)
    theirs = values.round().astype(np.int64)
    same = {}
    for connectivity in (1, image.ndim):
        curve = ecc.euler_curve(image, levels, connectivity=connectivity)
        same[connectivity] = bool(np.array_equal(curve.values, theirs))
    times = in_turns(calls, 7)
    row = {"image": " x ".join(map(str, shape)), "levels": at.size, "equal at": same}
    row |= {f"{name}, ms": 1e3 * one.seconds for name, one in times.items()}
    row["GPU-ECC / ours"] = times["GPU-ECC"].seconds / times["ours"].seconds
    print(row, flush=True)
    return row


def main() -> None:
    rows = [measure(shape) for shape in SHAPES]
    name = cuda_device()
    path = Path(__file__).parent / "results" / "cuda_gpu_ecc.json"
    path.write_text(json.dumps({"rows": rows, "device": name}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
