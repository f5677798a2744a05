"""Sets that come with or through scikit-learn: digits, 20 Newsgroups, and MNIST's small CSV."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.npz import from_arrays

NEWS_CATEGORIES = (
    "alt.atheism",
    "comp.sys.ibm.pc.hardware",
    "misc.forsale",
    "rec.autos",
    "rec.sport.hockey",
    "sci.crypt",
    "sci.electronics",
    "sci.med",
    "sci.space",
    "talk.politics.guns",
)


def read_digits(k: int = 5) -> Dataset:
    """scikit-learn's 1,797 digits of 8 x 8 pixels in 0..1, on their ``k``-nearest-neighbour graph."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    arrays = {"x": (bunch.data / 16).astype(np.float32), "y": bunch.target.astype(np.int64)}
    return from_arrays(arrays, "digits", "scikit-learn's digits", k=k)


def read_mnist5k(files: Mapping[str, Path], name: str, k: int = 5, scale: float = 1.0) -> Dataset:
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


def read_20news(cache: Path, *, download: bool, k: int = 5) -> Dataset:
    """Ten topics, word counts of words in at least 5 % of the posts, TF-IDF: DIFFormer's recipe, 9607 x 236."""
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    try:
        posts = fetch_20newsgroups(
            data_home=str(cache), subset="all", categories=list(NEWS_CATEGORIES), download_if_missing=download
        )
    except (OSError, EOFError, ValueError) as error:
        raise DataError(
            f"20news: the posts are not in {cache} and could not be fetched ({error}). Either go online, or put "
            "20news.npz into the folder named by HGDE_DATA or --data-root"
        ) from None
    counts = CountVectorizer(stop_words="english", min_df=0.05)
    weights = TfidfTransformer(smooth_idf=False).fit_transform(counts.fit_transform(posts.data)).tocsr()
    arrays: dict[str, Any] = {
        "feat_data": weights.data,
        "feat_indices": weights.indices,
        "feat_indptr": weights.indptr,
        "feat_shape": np.asarray(weights.shape),
        "y": posts.target.astype(np.int64),
        "class_names": np.asarray(posts.target_names),
        "feature_names": counts.get_feature_names_out().astype(str),
    }
    return from_arrays(arrays, "20news", cache / "20news-bydate", k=k)
