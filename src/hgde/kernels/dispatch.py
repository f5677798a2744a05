"""Which tensors the compiled kernels serve."""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.kernels.backend import Backend, checked, get_backend

_FUSED_DTYPES = (torch.float32, torch.float64)


def use_fused(backend: Backend, *tensors: Tensor | None) -> bool:
    """Whether the compiled path serves these tensors: on the CPU, float32 or float64, all of one dtype."""
    chosen = checked(backend)
    if chosen == "auto":
        chosen = get_backend()
    if chosen == "reference":
        return False
    present = [tensor for tensor in tensors if tensor is not None]
    first = present[0].dtype
    suitable = first in _FUSED_DTYPES and all(t.device.type == "cpu" and t.dtype == first for t in present)
    if not suitable and backend == "fused":
        found = ", ".join(sorted({f"{t.dtype} on {t.device}" for t in present}))
        raise ValueError(
            f"the fused kernels take float32 or float64 tensors of one dtype on the CPU, got {found}; "
            "convert the tensors, or leave backend='auto'"
        )
    return suitable
