"""One step of diffusion: plain torch on any device, compiled passes on the CPU, all pairs in tiles.

Names are imported when first used: kernels can be asked for (:mod:`~hgde.kernels.ahead`) before torch is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgde.lazy import on_first_use

_HOMES = {
    "hgde.kernels.ahead": ("warm_up",),
    "hgde.kernels.backend": ("Backend", "get_backend", "set_backend"),
    "hgde.kernels.ball": ("FusedBall",),
    "hgde.kernels.cpu.pages": ("give_back",),
    "hgde.kernels.linear": ("watch_linear_errors",),
    "hgde.kernels.ops": (
        "advance",
        "attend_steps",
        "diffuse",
        "diffuse_steps",
        "edge_values",
        "follow",
        "follows",
        "tangent_sum",
        "tangent_sum_global",
        "tangent_sum_global_linear",
    ),
    "hgde.kernels.ops.layers": (
        "decode",
        "encode",
        "exp_origin",
        "link_logits",
        "log_origin",
        "pair_squares",
        "sparse_matmul",
        "translate_tangent",
    ),
    "hgde.kernels.reach": ("Reach", "reach_of"),
    "hgde.kernels.reference": ("ACTIVATIONS",),
    "hgde.kernels.weights": ("AttentionRule", "AttentionWeights", "ChannelWeights", "EdgeWeights", "LocalWeights"),
}
__getattr__, __dir__, __all__ = on_first_use(__name__, _HOMES)

if TYPE_CHECKING:
    from hgde.kernels.ahead import warm_up as warm_up
    from hgde.kernels.backend import Backend as Backend
    from hgde.kernels.backend import get_backend as get_backend
    from hgde.kernels.backend import set_backend as set_backend
    from hgde.kernels.ball import FusedBall as FusedBall
    from hgde.kernels.cpu.pages import give_back as give_back
    from hgde.kernels.linear import watch_linear_errors as watch_linear_errors
    from hgde.kernels.ops import advance as advance
    from hgde.kernels.ops import attend_steps as attend_steps
    from hgde.kernels.ops import diffuse as diffuse
    from hgde.kernels.ops import diffuse_steps as diffuse_steps
    from hgde.kernels.ops import edge_values as edge_values
    from hgde.kernels.ops import follow as follow
    from hgde.kernels.ops import follows as follows
    from hgde.kernels.ops import tangent_sum as tangent_sum
    from hgde.kernels.ops import tangent_sum_global as tangent_sum_global
    from hgde.kernels.ops import tangent_sum_global_linear as tangent_sum_global_linear
    from hgde.kernels.ops.layers import decode as decode
    from hgde.kernels.ops.layers import encode as encode
    from hgde.kernels.ops.layers import exp_origin as exp_origin
    from hgde.kernels.ops.layers import link_logits as link_logits
    from hgde.kernels.ops.layers import log_origin as log_origin
    from hgde.kernels.ops.layers import pair_squares as pair_squares
    from hgde.kernels.ops.layers import sparse_matmul as sparse_matmul
    from hgde.kernels.ops.layers import translate_tangent as translate_tangent
    from hgde.kernels.reach import Reach as Reach
    from hgde.kernels.reach import reach_of as reach_of
    from hgde.kernels.reference import ACTIVATIONS as ACTIVATIONS
    from hgde.kernels.weights import AttentionRule as AttentionRule
    from hgde.kernels.weights import AttentionWeights as AttentionWeights
    from hgde.kernels.weights import ChannelWeights as ChannelWeights
    from hgde.kernels.weights import EdgeWeights as EdgeWeights
    from hgde.kernels.weights import LocalWeights as LocalWeights
