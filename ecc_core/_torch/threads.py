"""How many threads of the CPU serve a call."""

import torch

from ecc_core._request.resources import AtMost


def threads() -> int:
    """Use at most as many threads as torch."""
    return AtMost(torch.get_num_threads())
