"""Does a loss on topology help a U-Net? It segments rings, in which noise makes gaps."""

import numpy as np
import torch
from torch import nn

from ecc_core.nn import BettiError, EulerCurveLoss

rng = np.random.default_rng(0)
offsets = np.indices((48, 48)) - rng.uniform(8, 40, (80, 4, 2, 1, 1))  # Each image has 4 centres.
rings = torch.tensor(abs(np.linalg.norm(offsets, axis=2) - 6).min(axis=1) < 0.9)[:, None].float()
images = rings + 0.7 * torch.tensor(rng.normal(size=rings.shape)).float()


class Skip(nn.Sequential):
    def forward(self, image):
        return torch.cat([image, super().forward(image)], 1)


def unet():
    fine, coarse, last = (nn.Conv2d(*n, 3, padding=1) for n in ((1, 12), (12, 12), (24, 1)))
    deep = Skip(nn.MaxPool2d(2), coarse, nn.ReLU(), nn.Upsample(scale_factor=2))
    return nn.Sequential(fine, nn.ReLU(), deep, last)


for weight in (0, 50):
    torch.manual_seed(0)
    model, topology = unet(), EulerCurveLoss(window=24, from_logits=True)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    # 64 of the 80 images are for training.
    for step, chosen in enumerate(torch.arange(1600).reshape(200, 8) % 64):
        found = model(images[chosen])
        loss = nn.functional.binary_cross_entropy_with_logits(found, rings[chosen])
        if weight and step >= 100:
            loss = loss + weight * topology(found, rings[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    error = BettiError(window=24)(model(images[64:]).sigmoid().detach(), rings[64:]).mean()
    print(f"weight of the loss {weight}: Betti error {error:.2f} per window")
