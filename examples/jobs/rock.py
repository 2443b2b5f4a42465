"""What a rock is like and where it percolates, from a volume that need not fit in memory."""

import numpy as np
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_table

SPACING = 10.0, 5.0, 5.0  # In micrometers.

noise = np.random.default_rng(0).normal(size=(48, 96, 96))
rock = gaussian_filter(noise, (1.5, 3, 3))
rock = (32768 + 8000 * rock / rock.std() + 800 * noise).clip(0, 65535).astype(np.uint16)
np.save("rock.npy", rock)

lengths = ["--spacing", ",".join(map(str, SPACING)), "--unit", "um"]
curves = ["--thresholds", "64", "--range", "12000,54000", "--smooth", "1"]
minkowski = ["--minkowski", "crofton-13", "--boundary", "half-open", "--density"]
main(
    ["stack", "rock.npy", *curves, *minkowski, *lengths, "--out", "rock.csv", "--plot", "rock.png"]
)

table = read_table("rock.csv").curves
i = int(np.searchsorted(table.thresholds, 28000))  # Pores are dark.
print(f"pores at {table.thresholds[i]:.0f}: porosity {table.volume[0, i]:.3f}")
print(f"specific surface {table.surface[0, i]:.4f} per {table.spacing_units}")
# Connectivity density is (1 - χ) / V, and 1 / V is small beside it.
loops = -table.euler[0, i]
print(f"connectivity density {loops:.2g} per cubic {table.spacing_units}")

smooth = gaussian_filter(rock.astype(np.float32), 1)
found = ecc.component_curves(smooth, table.thresholds, spacing=SPACING)
first = found.thresholds[[np.argmax(spans > 0) for spans in found.spanning]]
porosity = np.interp(first, found.thresholds, found.porosity)
for axis, level, part in zip("zyx", first, porosity, strict=True):
    print(f"pores percolate along {axis} from {level:.0f} on, where the porosity is {part:.3f}")
