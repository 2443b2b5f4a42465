#!/usr/bin/env bash
# Closings of scikit-image by area and by diameter: floats are inverted as 1 - x and back, so that the result is
# rounded to the precision at 1. A float32 image of values below 1e-8 becomes constantly 0, and at points where
# nothing is closed the result differs from the image. The openings, which invert nothing, keep every value.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "scikit-image==0.26.0" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from skimage.morphology import area_closing, area_opening, diameter_closing, diameter_opening

print({name: version(name) for name in ("scikit-image", "numpy")})

# A floor of 2, one well of one pixel and a basin of six: a closing of size 3 fills the well alone.
image = np.full((6, 6), 2.0)
image[1, 1] = 1.0
image[3:5, 2:5] = 1.0
closed = image.copy()
closed[1, 1] = 2.0

print("float32, the image times a unit: values of the closings, and whether they are the right ones")
right = {}
for unit in (1.0, 1e-6, 1e-9):
    scaled = (image * unit).astype(np.float32)
    expected = (closed * unit).astype(np.float32)
    for closing in (area_closing, diameter_closing):
        result = closing(scaled, 3)
        right[closing.__name__, unit] = bool(np.array_equal(result, expected))
        print(f"  {closing.__name__:16} unit {unit:g}: {np.unique(result).tolist()} {right[closing.__name__, unit]}")
    for opening in (area_opening, diameter_opening):
        # The opening of the image of opposite order is the closing, without an inversion of the values.
        opened = -opening(-scaled, 3)
        assert np.array_equal(opened, expected)
assert right == {
    (name, unit): unit == 1.0 for name in ("area_closing", "diameter_closing") for unit in (1.0, 1e-6, 1e-9)
}
assert not area_closing((image * 1e-9).astype(np.float32), 3).any()
print("  minus the opening of minus the image is right for all units")

print("float64, a size of 1, which closes nothing:")
values = np.array([[0.001, 0.1, 0.2], [0.3, 0.7, 0.01], [0.5, 0.6, 0.9]])
changed = int((area_closing(values, 1) != values).sum())
print(f"  {changed} of 9 values of area_closing differ from the image")
assert changed > 0
assert np.array_equal(area_opening(values, 1), values)
print("  none of area_opening")
PYTHON
