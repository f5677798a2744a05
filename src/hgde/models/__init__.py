"""Models: encoder, HPDE block and decoder, alone or put together."""

from hgde.models.base import MODELS, Model, Shape
from hgde.models.block import HPDEBlock
from hgde.models.conv import HGDEConv
from hgde.models.hgde import HGDE
from hgde.models.layers import Encoder, HyperbolicLinear, NodeDecoder

__all__ = ["HGDE", "MODELS", "Encoder", "HGDEConv", "HPDEBlock", "HyperbolicLinear", "Model", "NodeDecoder", "Shape"]
