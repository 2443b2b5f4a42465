#!/usr/bin/env bash
# The extrema of scikit-image by height: none are found in signed integers whose range exceeds their dtype's
# maximum (numpy.ptp overflows there), and every pixel is one in float32 images far from zero, where the allowance
# for rounding is larger than the height asked for.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "scikit-image==0.26.0" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from skimage.morphology import h_maxima, h_minima

print({name: version(name) for name in ("scikit-image", "numpy")})


def peaks(dtype, floor, low, high):
    """An image of a constant floor with two peaks of one pixel."""
    image = np.full((5, 5), floor, dtype)
    image[1, 1] = high
    image[3, 3] = low
    return image


print("Signed integers: two peaks of more than 100, the higher one at the top of the dtype.")
found = {
    (np.dtype(dtype).name, highest): int(h_maxima(peaks(dtype, floor, floor + 120, highest), 100).sum())
    for dtype, floor, tops in (
        (np.int8, -128, (-5, 127)),
        (np.int16, -32768, (-5, 32767)),
        (np.uint16, 0, (32763, 65535)),
    )
    for highest in tops
}
for (dtype, highest), count in found.items():
    print(f"  {dtype:6} highest {highest:6}: {count} maxima of height 100")
assert found == {
    ("int8", -5): 2, ("int8", 127): 0,
    ("int16", -5): 2, ("int16", 32767): 0,
    ("uint16", 32763): 2, ("uint16", 65535): 2,
}  # fmt: skip
wells = ~peaks(np.int16, -32768, -32648, 32767)
assert not h_minima(wells, 100).any()
print("  h_minima of the inverted int16 image: 0")

print("Floats: peaks of 1 and 0.25 above a floor; maxima of height 0.5.")
counts = {
    (np.dtype(dtype).name, floor): int(h_maxima(peaks(dtype, floor, floor + 0.25, floor + 1), 0.5).sum())
    for dtype in (np.float32, np.float64)
    for floor in (0.0, 1e3, 1e6)
}
for (dtype, floor), count in counts.items():
    print(f"  {dtype} floor {floor:9.0f}: {count} of 25 pixels")
for (dtype, floor), count in counts.items():
    assert count == (25 if (dtype, floor) == ("float32", 1e6) else 1)
assert np.unique(peaks(np.float32, 1e6, 1e6 + 0.25, 1e6 + 1)).tolist() == [1e6, 1e6 + 0.25, 1e6 + 1]
print("  float32 holds 1000000, 1000000.25 and 1000001 exactly")
PYTHON
