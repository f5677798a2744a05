"""Small data sets written in the form of each original source."""

import io
import pickle

import numpy as np
from scipy.sparse import csr_matrix, save_npz

RANDOM = np.random.RandomState(7)
NUM_NODES, NUM_WORDS, NUM_CLASSES = 640, 12, 3
FEATURES = (RANDOM.rand(NUM_NODES, NUM_WORDS) < 0.1).astype(np.float32)
FEATURES[:, 0] = np.maximum(FEATURES[:, 0], FEATURES.sum(1) == 0)
LABELS = RANDOM.randint(0, NUM_CLASSES, NUM_NODES)
EDGES = np.unique(np.sort(RANDOM.randint(0, NUM_NODES, (2, 1500)), axis=0), axis=1)
EDGES = EDGES[:, EDGES[0] != EDGES[1]]


def planetoid(name: str, protocol: int) -> tuple[dict[str, bytes], list[int]]:
    """Planetoid's eight files; node 630 is in the test range and has no row. Also the nodes without a row."""
    num_train, first_test = 6, 600
    test_nodes = [node for node in range(first_test, NUM_NODES) if node != 630]
    RANDOM.shuffle(test_nodes)
    one_hot = np.eye(NUM_CLASSES, dtype=np.int32)[LABELS]
    sparse = csr_matrix(FEATURES)
    graph = {node: [] for node in range(NUM_NODES)}
    for u, v in EDGES.T.tolist():
        graph[u].append(v)
        graph[v].append(u)
    parts = {
        "x": sparse[:num_train],
        "y": one_hot[:num_train],
        "allx": sparse[:first_test],
        "ally": one_hot[:first_test],
        "tx": sparse[test_nodes],
        "ty": one_hot[test_nodes],
        "graph": graph,
    }
    files = {f"ind.{name}.{part}": pickle.dumps(value, protocol) for part, value in parts.items()}
    files[f"ind.{name}.test.index"] = "".join(f"{node}\n" for node in test_nodes).encode()
    return files, [630]


def webkb(name: str) -> dict[str, bytes]:
    rows = ["node_id\tfeature\tlabel"]
    for node in RANDOM.permutation(NUM_NODES).tolist():
        words = ",".join(str(int(word)) for word in FEATURES[node])
        rows.append(f"{node}\t{words}\t{LABELS[node]}")
    pairs = ["node_id\tnode_id", *(f"{u}\t{v}" for u, v in EDGES.T.tolist()), "5\t5"]
    files = {
        "out1_node_feature_label.txt": "\n".join(rows).encode(),
        "out1_graph_edges.txt": "\n".join(pairs).encode(),
    }
    for number in range(10):
        part = RANDOM.randint(0, 3, NUM_NODES)
        masks = {f"{key}_mask": (part == place).astype(np.uint8) for place, key in enumerate(("train", "val", "test"))}
        files[f"{name}_split_0.6_0.2_{number}.npz"] = npz(**masks)
    return files


def disease(name: str) -> dict[str, bytes]:
    """A tree whose edge list names its nodes in order, as HGCN's does."""
    parents = [int(RANDOM.randint(0, node)) for node in range(1, NUM_NODES)]
    order: dict[int, int] = {}
    lines = []
    for child, parent in enumerate(parents, start=1):
        lines.append(f"{parent},{child}")
        for node in (parent, child):
            order.setdefault(node, len(order))
    labels, features = io.BytesIO(), io.BytesIO()
    np.save(labels, (LABELS > 0).astype(np.int64))
    save_npz(features, csr_matrix(FEATURES.astype(np.float64)))
    return {
        f"{name}.edges.csv": "\n".join(lines).encode(),
        f"{name}.labels.npy": labels.getvalue(),
        f"{name}.feats.npz": features.getvalue(),
    }


def airport(protocol: int) -> tuple[dict[str, bytes], np.ndarray]:
    import networkx

    features = RANDOM.rand(NUM_NODES, 5) * 2
    graph = networkx.Graph()
    for node in range(NUM_NODES):
        graph.add_node(f"airport {node}", feat=features[node])
    graph.add_edges_from((f"airport {u}", f"airport {v}") for u, v in EDGES.T.tolist())
    return {"airport.p": pickle.dumps(graph, protocol)}, features


def shchur(name: str, *, style: str) -> dict[str, bytes]:
    """Arrays under the names of the two plain styles, or pickled matrices."""
    adjacency = csr_matrix((np.ones(EDGES.shape[1]), tuple(EDGES)), shape=(NUM_NODES, NUM_NODES))
    attributes = csr_matrix(FEATURES)
    if style == "pickled":
        wrap = {"adj_matrix": _boxed(adjacency), "node_attr": _boxed(attributes), "node_label": LABELS}
        return {f"{name}.npz": npz(**wrap)}
    prefixes = {"_": ("adj_", "attr_"), ".": ("adj_matrix.", "attr_matrix.")}[style]
    arrays: dict[str, np.ndarray] = {"labels": LABELS}
    for prefix, matrix in zip(prefixes, (adjacency, attributes), strict=True):
        for part in ("data", "indices", "indptr"):
            arrays[prefix + part] = getattr(matrix, part)
        arrays[f"{prefix}shape"] = np.asarray(matrix.shape)
    return {f"{name}.npz": npz(**arrays)}


def npz(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _boxed(value) -> np.ndarray:
    box = np.empty((), dtype=object)
    box[()] = value
    return box
