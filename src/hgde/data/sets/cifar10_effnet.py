"""CIFAR-10 as EfficientNet features, a stand-in for SimCLR's."""

from __future__ import annotations

from hgde.data.sets._texts import FEW
from hgde.data.spec import DatasetSpec, Expected, register
from hgde.data.splits.nodes import SplitRule

SPEC = register(
    DatasetSpec(
        name="cifar10_effnet",
        title="15,000 CIFAR-10 images as EfficientNet-Lite0 features (stand-in for SimCLR)",
        kind="files",
        tasks=("nodes",),
        protocols=f"{FEW} (10, 50 or 100 labels per class)",
        licence="not stated",
        citation="Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009",
        expected=Expected(15000, 51467, 128, 10, 0.604, 1, 15000, 2.5, 0.458),
        notes="Comparable with itself, not with published CIFAR numbers: the features are not SimCLR's.",
        split_rule=SplitRule("few"),
    )
)
