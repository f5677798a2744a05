"""scikit-learn's handwritten digits, which need no file."""

from __future__ import annotations

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.io.npz import from_arrays
from hgde.data.sets._texts import FEW
from hgde.data.spec import DatasetSpec, register
from hgde.data.splits.nodes import SplitRule


def read(k: int = 5) -> Dataset:
    """1,797 digits of 8 x 8 pixels in 0..1, on their ``k``-nearest-neighbour graph."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    arrays = {"x": (bunch.data / 16).astype(np.float32), "y": bunch.target.astype(np.int64)}
    return from_arrays(arrays, "digits", "scikit-learn's digits", k=k)


SPEC = register(
    DatasetSpec(
        name="digits",
        title="1,797 handwritten digits, 8 x 8 pixels, shipped with scikit-learn",
        kind="builtin",
        tasks=("nodes",),
        protocols=FEW,
        licence="not stated by scikit-learn; a copy from the UCI Machine Learning Repository",
        citation="Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998",
        read=read,
        notes="Pixels are divided by 16. Nothing is downloaded.",
        split_rule=SplitRule("few"),
    )
)
