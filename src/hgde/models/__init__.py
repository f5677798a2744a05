"""Models: encoder, HPDE block and decoders, alone or put together."""

from hgde.models.block import HGDEConv, HPDEBlock
from hgde.models.decoder import LinkDecoder, NodeDecoder
from hgde.models.encoder import Encoder
from hgde.models.hgde import HGDE, NodeModel
from hgde.models.linear import HyperbolicLinear

__all__ = ["HGDE", "Encoder", "HGDEConv", "HPDEBlock", "HyperbolicLinear", "LinkDecoder", "NodeDecoder", "NodeModel"]
