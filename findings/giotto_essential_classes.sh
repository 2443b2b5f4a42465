#!/usr/bin/env bash
# giotto-tda leaves out the component that never dies. With reduced_homology=False its death is the
# largest value of all images of the batch, so that a diagram depends on the other images.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "giotto-tda==0.6.2"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from gtda.homology import CubicalPersistence

print("giotto-tda", version("giotto-tda"))
low, high = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[0.0, 1.0], [2.0, 90.0]])


def first_class(images, **options):
    found = CubicalPersistence((0, 1), **options).fit_transform(np.stack(images))
    return found[0, 0].tolist()  # of the first image: birth, death, dimension


dropped = first_class([low])
alone = first_class([low], reduced_homology=False)
beside = first_class([low, high], reduced_homology=False)
print("default:", dropped, "reduced_homology=False:", alone, "beside a brighter image:", beside)
assert dropped == [0, 0, 0]
assert alone == [0, 3, 0]
assert beside == [0, 90, 0]
PYTHON
