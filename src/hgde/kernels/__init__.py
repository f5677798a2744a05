"""One step of diffusion: plain torch on any device, compiled passes on the CPU, all pairs in tiles."""

from hgde.kernels.backend import Backend, get_backend, set_backend
from hgde.kernels.ball import FusedBall
from hgde.kernels.linear import watch_linear_errors
from hgde.kernels.ops import (
    advance,
    attend_steps,
    diffuse,
    diffuse_steps,
    edge_values,
    follow,
    follows,
    tangent_sum,
    tangent_sum_global,
    tangent_sum_global_linear,
    warm_up,
)
from hgde.kernels.ops.layers import (
    decode,
    encode,
    exp_origin,
    link_logits,
    log_origin,
    sparse_matmul,
    translate_tangent,
)
from hgde.kernels.reach import Reach, reach_of
from hgde.kernels.reference import ACTIVATIONS
from hgde.kernels.weights import AttentionRule, AttentionWeights, ChannelWeights, EdgeWeights, LocalWeights

__all__ = [
    "ACTIVATIONS",
    "AttentionRule",
    "AttentionWeights",
    "Backend",
    "ChannelWeights",
    "EdgeWeights",
    "FusedBall",
    "LocalWeights",
    "Reach",
    "advance",
    "attend_steps",
    "decode",
    "diffuse",
    "diffuse_steps",
    "edge_values",
    "encode",
    "exp_origin",
    "follow",
    "follows",
    "get_backend",
    "link_logits",
    "log_origin",
    "reach_of",
    "set_backend",
    "sparse_matmul",
    "tangent_sum",
    "tangent_sum_global",
    "tangent_sum_global_linear",
    "translate_tangent",
    "warm_up",
    "watch_linear_errors",
]
