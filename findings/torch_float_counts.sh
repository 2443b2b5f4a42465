#!/usr/bin/env bash
# torch counts in the dtype of the image: in bfloat16 a bin of torch.histc and torch.histogram stops at 256, in float16
# at 2,048 and in float32 at 2**24, so that histograms of ordinary images and volumes lose pixels without a word, as
# many as the number of threads leaves. torch.bucketize rounds integers to the dtype of float thresholds first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "torch==2.13.0" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import torch

print({name: version(name) for name in ("torch", "numpy")})


def counted(dtype, shape):
    """The points of a black image that the two histograms count, on one thread."""
    torch.set_num_threads(1)
    image = torch.zeros(shape, dtype=dtype)
    histc = torch.histc(image, bins=2, min=-1, max=1)
    histogram = torch.histogram(image, bins=2, range=(-1.0, 1.0)).hist
    assert histc.dtype == histogram.dtype == dtype
    return int(histc.double().sum()), int(histogram.double().sum())


print("Points of a black image that torch.histc and torch.histogram count:")
for dtype, shape, expected in (
    (torch.bfloat16, (256, 256), 2**8),
    (torch.float16, (256, 256), 2**11),
    (torch.float32, (257, 256, 256), 2**24),
    (torch.float64, (257, 256, 256), 257 * 256 * 256),
):
    counts = counted(dtype, shape)
    print(f"  {dtype} {shape}, {np.prod(shape)} points: {counts}")
    assert counts == (expected, expected)

torch.set_num_threads(2)
twice = int(torch.histc(torch.zeros((256, 256), dtype=torch.float16), bins=2, min=-1, max=1).double().sum())
print(f"  float16 (256, 256) on two threads: {twice}")
assert twice == 2 * 2**11
numpy_count = int(np.histogram(np.zeros((256, 256), np.float16), bins=2, range=(-1, 1))[0].sum())
print(f"  numpy.histogram, float16 (256, 256): {numpy_count}")
assert numpy_count == 256 * 256

value, threshold = 2**24 + 1, 2.0**24
places = {
    "torch.bucketize": int(torch.bucketize(torch.tensor([value], dtype=torch.int32), torch.tensor([threshold]))),
    "numpy.searchsorted": int(np.searchsorted(np.array([threshold], np.float32), np.array([value], np.int32))[0]),
}
print(f"Thresholds below {value} (int32), of [{threshold}] (float32): {places}")
assert places == {"torch.bucketize": 0, "numpy.searchsorted": 1}
PYTHON
