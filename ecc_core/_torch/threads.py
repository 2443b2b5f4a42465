"""The number of threads of a call on the CPU."""

import torch

from ecc_core._request.resources import AtMost


def threads() -> int:
    """Return a number of threads that is at most that of torch."""
    return AtMost(torch.get_num_threads())
