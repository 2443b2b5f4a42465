#!/usr/bin/env bash
# skimage.morphology.skeletonize of volumes erases some objects as a whole, though its documentation says
# that each connected component is reduced to a skeleton: cubes of 6 points, rods of 4 by 4 points.
# medial_axis may have more holes than the 8-connected image.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "scikit-image==0.26.0" "scipy==1.17.1" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
import numpy as np
import scipy.ndimage
import skimage
from skimage.morphology import medial_axis, skeletonize

print("scikit-image", skimage.__version__)
for sides in ((6, 6, 6), (4, 4, 40), (5, 5, 5), (5, 4, 40)):
    volume = np.pad(np.ones(sides, bool), 3)
    print("cuboid of", sides, "has a skeleton of", skeletonize(volume).sum(), "points")
    assert skeletonize(volume).any() == (5 in sides)

field = scipy.ndimage.gaussian_filter(np.random.default_rng(0).normal(size=(96, 96, 96)), 1.5)
volume = field > np.quantile(field, 0.93)
every = np.ones((3, 3, 3))
objects, count = scipy.ndimage.label(volume, every)
kept = np.unique(objects[skeletonize(volume) > 0]).size
print("objects of a random volume:", count, "with a skeleton:", kept)
assert (count, kept) == (1133, 1003)

image = np.array([[1, 1, 0, 1, 1], [1, 0, 1, 1, 1], [0, 1, 1, 1, 1], [0, 1, 1, 1, 1]], bool)
holes = []
for one in (image, skeletonize(image), medial_axis(image)):
    background = scipy.ndimage.label(np.pad(~one, 1, constant_values=True))[1]
    holes.append(background - 1)
print("holes of an 8-connected image, of its skeleton, and of its medial axis:", holes)
assert holes == [1, 1, 2]
PYTHON
