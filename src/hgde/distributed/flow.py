"""HGDE on a piece: the encoder on its own rows, the flow on these and the halo, the readout on its own rows again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from hgde.diffusion import Diffusivity, GraphFlow
from hgde.diffusion.degrees import Remembered
from hgde.diffusion.diffusivities.everywhere import Mixture
from hgde.diffusion.diffusivities.ricci import Ricci
from hgde.diffusion.flow import BoundFlow
from hgde.diffusion.operator import GlobalWeights, Operator
from hgde.distributed.crew import Crew, Piece
from hgde.distributed.everywhere import tangent_sum_everywhere
from hgde.distributed.partition import PartitionError
from hgde.distributed.scratch import Scratch
from hgde.geometry import PoincareBall
from hgde.graph import Features
from hgde.kernels import advance, diffuse
from hgde.kernels.cpu.mapped import move_layout, moved
from hgde.models import HGDE
from hgde.models.layers import Encoder, HyperbolicLinear
from hgde.solvers.control import agreeing


class PieceFlow:
    """A flow on a piece: every evaluation fetches the halo and returns the piece's own rows."""

    def __init__(self, flow: GraphFlow, z0: Tensor, piece: Piece) -> None:
        self.flow, self.z0, self.piece = flow, z0, piece
        halo = z0.new_zeros(piece.graph.num_halo, z0.shape[1])
        # The halo's rows of the result are not used; any start serves them.
        self.start = torch.cat([z0, halo])
        self.bound = BoundFlow(flow, z0, piece.graph, None)
        self.operator: Operator | None = None
        if flow.diffusivity.constant_in_time:
            self.operator = flow.diffusivity(self.start, piece.graph, flow.manifold)

    def __call__(self, t: Tensor | float, z: Tensor) -> Tensor:
        flow, piece = self.flow, self.piece
        every = piece.with_halo(z)
        operator = self.operator
        if operator is None:
            operator = flow.diffusivity(every, piece.graph, flow.manifold)
        weights = operator.edges_alone
        if isinstance(flow.manifold, PoincareBall) and weights is not None:
            moved = diffuse(every, piece.graph, weights, flow.manifold.c, self.start, flow.eta, flow.activation)
            return moved[: piece.own]
        near = replace(operator, everywhere=None)
        v = near.tangent_sum(every, piece.graph, flow.manifold)[: piece.own]
        if operator.everywhere is not None:
            v = (1 - operator.beta) * v + operator.beta * self._far(z, operator.everywhere)
        if isinstance(flow.manifold, PoincareBall):
            return advance(z, v, flow.manifold.c, self.z0, flow.eta, flow.activation)
        return self.bound.advance_plainly(z, v)

    def _far(self, z: Tensor, weights: GlobalWeights) -> Tensor:
        manifold = self.flow.manifold
        if weights.landmarks is not None or not isinstance(manifold, PoincareBall):
            raise PartitionError(
                "on a partition weights between all pairs of nodes are exact ones on the ball; choose the diffusivity "
                "global or local-global and the space ball"
            )
        own = self.piece.own
        return tangent_sum_everywhere(self.piece, z, weights.query[:own], weights.key[:own], manifold.c)


def embed(piece: Piece) -> Tensor:
    """Points of the piece's nodes after diffusion, ``[own, coordinates]``."""
    model = hgde_of(piece.learner)
    z0 = model.encoder(piece.features)
    with agreeing(piece.largest):
        return model.block.integrate(PieceFlow(model.block.flow, z0, piece), [0.0, model.block.time]).final


def hgde_of(learner: torch.nn.Module) -> HGDE:
    model = learner.model
    if not isinstance(model, HGDE):
        raise PartitionError(f"only the model hgde runs on partitions, got {type(model).__name__}")
    if not model.reads_out_each:
        raise PartitionError(
            "on partitions nodes are read out from their points alone: leave out model.own_readout, "
            "or choose a preset without them, such as default"
        )
    return model


def prepare(crew: Crew, *, learns: bool) -> None:
    """Hand every piece what its diffusivity must know of the whole graph, and what gradients need if it ``learns``."""
    for piece in crew.pieces.values():
        diffusivity = hgde_of(piece.learner).block.flow.diffusivity
        local = diffusivity.local if isinstance(diffusivity, Mixture) else diffusivity
        if isinstance(local, Ricci):
            curvature, alpha = piece.curvature(), crew.partition.facts.get("ricci")
            if curvature is None or alpha != local.alpha:
                raise PartitionError(
                    f"{crew.partition.path} has no Ricci curvatures for alpha = {local.alpha:g}; cut the graph again "
                    f"with --ricci {local.alpha:g}"
                )
            local.know(piece.graph, curvature)
        with torch.no_grad():
            _work_out(piece, local, crew.scratch, learns)


def _work_out(piece: Piece, diffusivity: Diffusivity, scratch: Scratch | None, learns: bool) -> None:
    """Work out what depends on the piece's graph alone, and keep it: in memory, or in mapped files."""
    graph = piece.graph
    if diffusivity.constant_in_time:
        diffusivity(torch.zeros(graph.num_nodes, 1, dtype=piece.dtype), graph, hgde_of(piece.learner).manifold)
    if scratch is not None:
        move = partial(scratch.mapped, piece=piece.number)
        for value in vars(diffusivity).values():
            if isinstance(value, Remembered):
                value.change(lambda known: moved(known, move))
        move_layout(graph.indptr, graph.indices, move, learns=learns)
    # Eight bytes for every edge, read once, and made again should anyone ask.
    graph.__dict__.pop("rows", None)
    if scratch is not None:
        scratch.rest(piece.number)


@torch.no_grad()
def scale_encoder(crew: Crew) -> None:
    """:meth:`hgde.models.layers.Encoder.scale_to` over all pieces: fresh weights to the distance the model asks for."""
    model = hgde_of(crew.learner)
    if model.start_distance == 0:
        return
    encoder = model.encoder.eval()
    given: Mapping[int, Features] = {number: piece.features for number, piece in crew.pieces.items()}
    for layer in (encoder.linear, *encoder.hidden):
        assert isinstance(layer, HyperbolicLinear)
        sums = crew.run(partial(_lengths, encoder, layer, given))
        length = float(crew.total(sums)) / crew.partition.num_nodes
        if length > 0:
            layer.weight.mul_(0.5 * model.start_distance / length)
        given = crew.run(partial(_through, encoder, layer, given))
    encoder.train()


def _through(encoder: Encoder, layer: HyperbolicLinear, given: Mapping[int, Features], piece: Piece) -> Tensor:
    return encoder.activate(layer.tangent(given[piece.number]), layer)


def _lengths(encoder: Encoder, layer: HyperbolicLinear, given: Mapping[int, Features], piece: Piece) -> Tensor:
    return _through(encoder, layer, given, piece).norm(dim=-1).sum(dtype=torch.float64)
