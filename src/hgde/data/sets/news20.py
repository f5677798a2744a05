"""Ten topics of 20 Newsgroups, read from the archive itself: nothing in it is unpickled."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.dataset import Dataset
from hgde.data.errors import DataError
from hgde.data.io.npz import from_arrays
from hgde.data.sets._texts import DIFFORMER, FEW
from hgde.data.spec import DatasetSpec, Expected, RemoteFile, register
from hgde.data.splits.nodes import SplitRule

ARCHIVE = "20news-bydate.tar.gz"
TOPICS = (
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
_LOADING_SEED, _FETCHING_SEED = 0, 42


def read(files: Mapping[str, Path], name: str, k: int = 5, scale: float = 1.0) -> Dataset:
    """Word counts of words in at least 5 % of the posts, TF-IDF: DIFFormer's recipe, 9607 x 236."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    path = files[ARCHIVE]
    texts, labels, topics = read_posts(path)
    counts = CountVectorizer(stop_words="english", min_df=0.05)
    weights = TfidfTransformer(smooth_idf=False).fit_transform(counts.fit_transform(texts)).tocsr()
    arrays: dict[str, Any] = {
        "feat_data": weights.data,
        "feat_indices": weights.indices,
        "feat_indptr": weights.indptr,
        "feat_shape": np.asarray(weights.shape),
        "y": labels,
        "class_names": np.asarray(topics),
        "feature_names": counts.get_feature_names_out().astype(str),
    }
    return from_arrays(arrays, name, path, k=k, scale=scale)


def read_posts(path: Path) -> tuple[list[str], np.ndarray[Any, Any], list[str]]:
    """Posts of the ten topics, their labels and the topics' names, in the order scikit-learn's loader gives them.

    That loader shuffles each of the parts train and test (seed 0), joins them, keeps the topics asked for, and shuffles
    again (seed 42); node numbers, and with them the splits of a seed, are to stay what they were.
    """
    posts = _members(path)
    chosen: list[tuple[str, str]] = []
    for part in ("train", "test"):
        names = sorted(name for name in posts if name[0] == f"20news-bydate-{part}")
        order = np.arange(len(names))
        np.random.RandomState(_LOADING_SEED).shuffle(order)
        chosen += [(names[place][1], posts[names[place]]) for place in order.tolist() if names[place][1] in TOPICS]
    present = sorted({topic for topic, _ in chosen})
    if len(present) < 2:
        raise DataError.at(path, f"expected posts of the topics {', '.join(TOPICS[:3])}, ..., got {present or 'none'}")
    order = np.arange(len(chosen))
    np.random.RandomState(_FETCHING_SEED).shuffle(order)
    texts = [chosen[place][1] for place in order.tolist()]
    labels = np.array([present.index(chosen[place][0]) for place in order.tolist()], dtype=np.int64)
    return texts, labels, present


def _members(path: Path) -> dict[tuple[str, str, str], str]:
    """Every post by (part, topic, file name); the archive's names are only looked at, nothing is written."""
    posts: dict[tuple[str, str, str], str] = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                parts = tuple(part for part in member.name.split("/") if part not in ("", "."))
                stream = archive.extractfile(member) if member.isreg() and len(parts) == 3 else None
                if stream is not None:
                    posts[parts[0], parts[1], parts[2]] = stream.read().decode("latin1")
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise DataError.at(path, f"not a readable tar.gz archive ({error})") from None
    return posts


SPEC = register(
    DatasetSpec(
        name="20news",
        title="ten topics of 20 Newsgroups, TF-IDF of frequent words",
        kind="features",
        tasks=("nodes",),
        protocols=f"{FEW} (100, 200 or 400 labels per class)",
        licence="not stated (public Usenet posts)",
        citation=DIFFORMER,
        read=read,
        files=(
            RemoteFile(
                "https://ndownloader.figshare.com/files/5975967",
                0,
                "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
                ARCHIVE,
            ),
        ),
        expected=Expected(9607, 31109, 236, 10, 0.540, 2, 9601, 2.5, 0.461),
        notes="Edges are those of the 5-nearest-neighbour graph, the node itself counted.",
        split_rule=SplitRule("few"),
        aliases=("20newsgroups", "news20"),
    )
)
