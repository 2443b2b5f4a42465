"""
Soft curves: changing an image by its gradient
==============================================

The exact curve is a step function, whose gradient vanishes. The soft curve is differentiable, and
its gradient shows how to change an image to change its topology. Here gradient descent closes a
broken ring. This example requires PyTorch.
"""

# %%
# The soft curve approaches the exact curve as the sharpness grows.
import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from ecc_core.nn.functional import soft_euler_curve

noise = gaussian_filter(np.random.default_rng(1).standard_normal((64, 64)), 3, mode="wrap")
image = torch.from_numpy(noise / noise.std()).float()
t = torch.linspace(-2.5, 2.5, 201)
figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
for sharpness, colour in ((3, "#E69F00"), (10, "#D55E00"), (100, "#0072B2")):
    soft = soft_euler_curve(image, t, sharpness=sharpness)
    ax.plot(t, soft, color=colour, label=f"sharpness {sharpness}")
ax.step(
    t, ecc.euler_curve(image, t).values, where="post", color="#1a1a1a", linewidth=0.8, label="exact"
)
ax.set(xlabel="threshold", ylabel="Euler characteristic")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# A ring with a weak spot. At most thresholds it is open and has an Euler characteristic of 1; a
# closed ring has 0. Gradient descent reduces the difference between the curve and 0, while a second
# term keeps the result close to the image.
y, x = np.mgrid[:64, :64] - 31.5
profile = np.exp(-0.5 * ((np.hypot(x, y) - 20) / 4) ** 2)
weak = 1 - 0.65 * np.exp(-0.5 * ((np.arctan2(y, x) - 0.6) / 0.35) ** 2)
ring = torch.from_numpy(profile * weak).float()
levels = torch.linspace(0.4, 0.7, 7)


def curve(values: torch.Tensor) -> torch.Tensor:
    """Return the soft curve of the bright sets."""
    return soft_euler_curve(values, levels, sharpness=40.0, superlevel=True)


result = ring.clone().requires_grad_()
optimizer = torch.optim.SGD([result], lr=0.01)
for _ in range(300):
    optimizer.zero_grad()
    loss = curve(result).square().mean() + 0.1 * (result - ring).square().sum()
    loss.backward()
    optimizer.step()
result = result.detach()

# %%
# Only the points that determine the topology have changed: those that bridge the gap.
figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.3), layout="constrained")
for ax, values, name in zip(axes, (ring, result), ("ring", "after descent"), strict=False):
    ax.imshow(values.numpy(), cmap="gray", vmin=0, vmax=1)
    ax.contour(values.numpy() >= 0.6, [0.5], colors="#E69F00")
    chi = ecc.euler_number(values >= 0.6)
    ax.set(title=f"{name}: χ = {chi} at 0.6", xticks=[], yticks=[])
for values, name, colour in ((ring, "ring", "#D55E00"), (result, "after descent", "#0072B2")):
    axes[2].plot(levels, curve(values), "o-", color=colour, markersize=3, label=name)
axes[2].set(xlabel="threshold", ylabel="soft Euler characteristic")
axes[2].spines[["top", "right"]].set_visible(False)
axes[2].legend(frameon=False)
plt.show()
