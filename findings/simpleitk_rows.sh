#!/usr/bin/env bash
# NumPy takes an image of SimpleITK for a row of all its pixels, since it has a length and items but no
# array protocol: functions of NumPy and SciPy accept it, and compute something else, without a word.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "SimpleITK==2.5.7" "scipy==1.17.1" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import scipy.ndimage
import SimpleITK

print({name: version(name) for name in ("SimpleITK", "scipy", "numpy")})
pixels = np.zeros((4, 6), np.uint8)
pixels[1:3, 2] = 1  # one object, a column of two pixels
image = SimpleITK.GetImageFromArray(pixels)
print("shapes:", SimpleITK.GetArrayFromImage(image).shape, np.asarray(image).shape)
assert SimpleITK.GetArrayFromImage(image).shape == (4, 6)
assert np.asarray(image).shape == (24,)
counts = scipy.ndimage.label(pixels)[1], scipy.ndimage.label(image)[1]
print("objects by scipy.ndimage.label, of the array and of the image:", counts)
assert counts == (1, 2)
PYTHON
