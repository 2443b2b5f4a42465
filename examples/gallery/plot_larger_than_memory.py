"""
Objects of an image larger than memory
======================================

A scan of a whole organ does not fit in memory, and an object near a cut between two blocks is in
both. ``ecc objects`` reads such an image by boxes, keeps what their neighbours can still change,
and writes the labels to OME-Zarr. Labels and table are those of the image in memory, wherever it is
cut.
"""

# %%
# The volume here is small, so that both ways can be compared: bright blobs of different size and
# brightness, on an uneven background, with the noise of a camera. It is stored as OME-Zarr.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from skimage.color import label2rgb

from ecc_core.cli import main
from ecc_core.io import open_image, read_image, write_image

rng = np.random.default_rng(3)
shape = 48, 160, 192
seeds = np.zeros(shape, np.float32)
at = tuple(rng.integers(6, n - 6, 60) for n in shape)
seeds[at] = rng.uniform(0.5, 1, 60)
blobs = gaussian_filter(seeds, 5)
background = gaussian_filter(rng.standard_normal(shape, np.float32), 30)
volume = 150 * blobs / blobs.max() + 30 * background / np.abs(background).max() + 60
volume = np.clip(volume + 3 * rng.standard_normal(shape, np.float32), 0, 255).astype(np.uint8)

folder = Path(tempfile.mkdtemp())
scan = folder / "scan.ome.zarr"
write_image(scan, volume, spacing=(2, 1, 1), unit="um")


# %%
# With ``--max-memory 30M`` the command reads boxes of a chunk each, of 48 x 64 x 64 points.
# Without the option, this volume is read as a whole. If a run is interrupted, ``--resume`` goes on
# from what it has kept beside its output.
def ecc(*arguments):
    """Run the command, as in a shell."""
    assert main([str(argument) for argument in arguments]) == 0


wanted = ["--superlevel", "--persistence", 25, "--smooth", 1, "--cut", "half"]
by_boxes = ["--max-memory", "30M", "--out", "{input}/labels/boxes", "--table", folder / "boxes.csv"]
as_a_whole = ["--out", "{input}/labels/whole", "--table", folder / "whole.csv"]
ecc("objects", scan, *wanted, *by_boxes)
ecc("objects", scan, *wanted, *as_a_whole)

labels = read_image(scan / "labels" / "boxes")
assert (labels == read_image(scan / "labels" / "whole")).all()
assert (folder / "boxes.csv").read_bytes() == (folder / "whole.csv").read_bytes()
print((folder / "boxes.csv").read_text()[:400])

# %%
# The lines are where the image was cut. Many objects lie in several boxes, and have one label.
cuts = [range(64, n, 64) for n in shape[1:]]
across = 0
for label in range(1, labels.max() + 1):
    index = np.nonzero(labels == label)[1:]
    across += any(np.unique(part // 64).size > 1 for part in index)
print(f"{labels.max()} objects, of which {across} are in several boxes")

middle = shape[0] // 2
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
axes[0].imshow(volume[middle], cmap="gray")
axes[0].set_title("A slice of the volume, and where it is cut")
axes[1].imshow(label2rgb(labels[middle], volume[middle], alpha=0.4, bg_label=0))
axes[1].set_title("Objects, each up to half of its height")
for panel in axes:
    for y in cuts[0]:
        panel.axhline(y - 0.5, color="tab:orange", lw=0.8)
    for x in cuts[1]:
        panel.axvline(x - 0.5, color="tab:orange", lw=0.8)
    panel.set_axis_off()

# %%
# The labels are part of the image: viewers of OME-Zarr, such as napari, show them on top of it.
print(open_image(scan / "labels" / "boxes"))
