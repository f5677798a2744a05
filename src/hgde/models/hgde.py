"""The HGDE model: encoder, HPDE block, decoder, each with the curvature it lives on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hgde.diffusion import GraphFlow, make_diffusivity
from hgde.geometry import PoincareBall
from hgde.graph import Features, Graph
from hgde.models.block import HPDEBlock
from hgde.models.decoder import LinkDecoder, NodeDecoder
from hgde.models.encoder import Encoder

if TYPE_CHECKING:
    from hgde.settings import Settings


class NodeModel(nn.Module):
    """What a trainer needs of a model on nodes; the baselines share it."""

    def forward(self, features: Features, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        """Logits ``[N, classes]``, or only those of ``nodes``."""
        raise NotImplementedError

    def feature_parameters(self) -> list[nn.Parameter]:
        """The parameters that meet the input features, the ones that weight decay is for."""
        raise NotImplementedError

    def prepare(self, graph: Graph) -> None:
        """Work out, once, what depends on the graph alone."""

    def curvatures(self) -> dict[str, float]:
        return {}


class HGDE(NodeModel):
    """Hyperbolic graph diffusion for nodes or links.

    ``forward(features, graph)`` gives class logits when built with classes (of some nodes only, if they are named);
    ``embed`` gives the points, and ``score_pairs`` the log-odds of links.
    """

    def __init__(self, encoder: Encoder, block: HPDEBlock, decoder: NodeDecoder | LinkDecoder) -> None:
        super().__init__()
        self.encoder, self.block, self.decoder = encoder, block, decoder

    @classmethod
    def from_settings(cls, settings: Settings, in_features: int, num_classes: int | None = None) -> HGDE:
        """The model the settings describe; without ``num_classes`` it decodes links."""
        learn = settings.learn_curvature
        source, target = (PoincareBall(settings.curvature, learnable=learn) for _ in range(2))
        encoder = Encoder(
            in_features,
            settings.width,
            source,
            target,
            settings.encoder_activation,
            settings.dropout,
            settings.encoder_layers,
            settings.state_dropout,
        )
        diffusivity = make_diffusivity(
            settings.diffusivity,
            settings.width,
            local=settings.local,
            heads=settings.heads,
            beta=settings.beta,
            learn_beta=settings.learn_beta,
            ricci_alpha=settings.ricci_alpha,
        )
        eta = settings.eta if settings.residual else None
        flow = GraphFlow(target, diffusivity, eta, settings.learn_eta, settings.activation)
        block = HPDEBlock(
            flow, settings.time, settings.method, settings.step, settings.rtol, settings.atol, settings.gradient
        )
        decoder = (
            LinkDecoder(target, settings.fermi_r, settings.fermi_t)
            if num_classes is None
            else NodeDecoder(settings.width, num_classes, target, settings.hidden_dropout)
        )
        return cls(encoder, block, decoder).to(getattr(torch, settings.dtype))

    @property
    def manifold(self) -> PoincareBall:
        """The ball the embedding lies on."""
        return self.block.flow.manifold

    def embed(self, features: Features, graph: Graph) -> Tensor:
        """Points of the ball after diffusion, ``[N, d]``."""
        return self.block(self.encoder(features), graph)

    def forward(self, features: Features, graph: Graph, nodes: Tensor | None = None) -> Tensor:
        if not isinstance(self.decoder, NodeDecoder):
            raise TypeError("this model decodes links: call score_pairs(embed(features, graph), pairs)")
        z = self.embed(features, graph)
        return self.decoder(z if nodes is None else z.index_select(0, nodes))

    def score_pairs(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Log-odds ``[M]`` that the pairs ``[2, M]`` are linked."""
        if not isinstance(self.decoder, LinkDecoder):
            raise TypeError("this model decodes node classes, not links")
        return self.decoder(z, pairs)

    def feature_parameters(self) -> list[nn.Parameter]:
        return [self.encoder.linear.weight]

    def prepare(self, graph: Graph) -> None:
        self.block.flow.diffusivity.prepare(graph)

    def curvatures(self) -> dict[str, float]:
        return {
            "encoder": float(self.encoder.linear.manifold.c.detach()),
            "diffusion": float(self.manifold.c.detach()),
        }
