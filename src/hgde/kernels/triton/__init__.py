"""The step along edges in Triton, for GPUs: forward, and the same two-pass backward as the compiled CPU kernels.

It has been checked in Triton's interpreter (``TRITON_INTERPRET=1``) on the CPU, and Triton compiles it for NVIDIA's
processors, but **it has not yet run on a GPU**, so nothing chooses it by itself: call :func:`diffuse` here. Needs the
package ``triton`` (the extra ``hgde[triton]``).
"""

from hgde.kernels.triton.step import diffuse, tangent_sum

__all__ = ["diffuse", "tangent_sum"]
