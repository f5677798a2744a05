"""STL-10 as SimCLR features, which the user supplies."""

from __future__ import annotations

from hgde.data.sets._texts import DIFFORMER, FEW, SUPPLY
from hgde.data.spec import DatasetSpec, register
from hgde.data.splits.nodes import SplitRule

SPEC = register(
    DatasetSpec(
        name="stl10_simclr",
        title="STL-10 images as SimCLR features (supply the file)",
        kind="files",
        tasks=("nodes",),
        protocols=f"{FEW} (10, 50 or 100 labels per class)",
        licence="not stated",
        citation=DIFFORMER,
        notes=SUPPLY,
        split_rule=SplitRule("few"),
        aliases=("stl10", "stl"),
    )
)
