"""Does a drug change the nuclei of a plate? From images of wells to a p-value.

Eight wells with two fields each; in the treated ones nuclei have vacuoles.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter
from skimage import draw, io

from ecc_core.cli import main

rng = np.random.default_rng(0)
y, x = np.indices((128, 128))
for well in ("A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4"):
    for field in range(2):
        image = np.zeros((128, 128))
        for cy, cx in rng.uniform(12, 116, (15, 2)):
            image[draw.disk((cy, cx), 9, shape=image.shape)] = rng.uniform(120, 160)
            if well[0] == "B":  # These wells were treated.
                image[draw.disk((cy + 2, cx - 2), 3, shape=image.shape)] = 40
        noisy = gaussian_filter(image, 1) + rng.normal(20, 8, image.shape)
        io.imsave(f"{well}_{field}.tif", noisy.clip(0, 255).astype(np.uint8), check_contrast=False)

curves = ["--superlevel", "--smooth", "1", "--range", "0,255", "--thresholds", "64", "--betti"]
main(["batch", "*_*.tif", *curves, "--persistence", "15", "--out", "plate.parquet"])

table = pd.read_parquet("plate.parquet")
table["well"] = [Path(name).stem[:2] for name in table["input"]]
table["drug"] = ["yes" if well[0] == "B" else "no" for well in table["well"]]
table.to_csv("wells.csv", index=False)

groups = ["compare", "wells.csv", "--by", "drug", "--unit", "well", "--measure", "b1"]
main([*groups, "--plot", "groups.png", "--out", "test.json"])
