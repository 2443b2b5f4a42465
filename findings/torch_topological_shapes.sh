#!/usr/bin/env bash
# CubicalComplex of torch_topological gives GUDHI the points of an image row by row together with its shape, which
# GUDHI reads with the first axis fastest: square images are transposed, which changes nothing, and all others are
# taken apart, so that their persistence is that of another image.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "torch_topological==0.1.9" "torch==2.13.0" "numpy==2.4.6" "gudhi==3.11.0"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import gudhi
import numpy as np
import torch
from torch_topological.nn import CubicalComplex

print({name: version(name) for name in ("torch_topological", "torch", "gudhi", "numpy")})


def components(image):
    """The births of components by torch_topological and by GUDHI itself."""
    info = CubicalComplex()(torch.from_numpy(image))
    layer = sorted(float(birth) for part in info if part.dimension == 0 for birth, _ in part.diagram)
    cubes = gudhi.CubicalComplex(top_dimensional_cells=image)
    cubes.compute_persistence()
    return layer, sorted(cubes.persistence_intervals_in_dimension(0)[:, 0].tolist())


for rows in (3, 4):
    stripes = np.tile(np.float32([0, 1, 0]), (rows, 1))  # two components of zeros, with a line between them
    layer, direct = components(stripes)
    print(f"{rows} x 3 pixels, two stripes: births by torch_topological {layer}, by GUDHI {direct}")
    assert direct == [0, 0]
    assert layer == ([0, 0] if rows == 3 else [0])
PYTHON
