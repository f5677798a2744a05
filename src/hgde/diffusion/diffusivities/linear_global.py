"""The global scheme at linear cost."""

from __future__ import annotations

from typing import ClassVar

from hgde.diffusion.diffusivities.everywhere import Global
from hgde.diffusion.diffusivity import DIFFUSIVITIES


@DIFFUSIVITIES.register("linear-global")
class LinearGlobal(Global):
    """Like ``global`` with ``sigmoid`` replaced by a line and the pairs by weighted centroids: cost ``N`` for ``N^2``.

    See :func:`hgde.kernels.tangent_sum_global_linear`.
    """

    exact: ClassVar[bool] = False
