"""One step of diffusion: plain torch on any device, fused passes on the CPU, all pairs in tiles."""

from hgde.kernels.backend import Backend, get_backend, set_backend
from hgde.kernels.ball import FusedBall
from hgde.kernels.reference import ACTIVATIONS
from hgde.kernels.sparse import sparse_matmul
from hgde.kernels.step import advance, diffuse, diffuse_steps, edge_values, tangent_sum
from hgde.kernels.streamed import tangent_sum_global, tangent_sum_global_linear
from hgde.kernels.translate import exp_origin, log_origin, translate_tangent
from hgde.kernels.weights import AttentionWeights, ChannelWeights, EdgeWeights, LocalWeights

__all__ = [
    "ACTIVATIONS",
    "AttentionWeights",
    "Backend",
    "ChannelWeights",
    "EdgeWeights",
    "FusedBall",
    "LocalWeights",
    "advance",
    "diffuse",
    "diffuse_steps",
    "edge_values",
    "exp_origin",
    "get_backend",
    "log_origin",
    "set_backend",
    "sparse_matmul",
    "tangent_sum",
    "tangent_sum_global",
    "tangent_sum_global_linear",
    "translate_tangent",
]
