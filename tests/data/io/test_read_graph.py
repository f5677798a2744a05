"""A user's own graph in every form gives the same data set, and a mistake is reported where it is."""

import networkx
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import coo_matrix

from hgde.data import Columns, DataError, read_graph
from hgde.data.splits import node_split

EDGES = "source,target\nanna,béla\nbéla,carl\ncarl,anna\ndora,carl\n"
NODES = """id,label,split,age,height
anna,red,train,1,0.5
béla,blue,val,2,1.5
carl,,,3,2.5
dora,red,test,4,-3e-1
"""
IDS = ["anna", "béla", "carl", "dora"]


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def check(dataset):
    assert dataset.ids == IDS
    assert dataset.class_names == ["blue", "red"]
    assert dataset.labels.tolist() == [1, 0, -1, 1]
    assert dataset.graph.undirected_edges.tolist() == [[0, 0, 1, 2], [1, 2, 2, 3]]
    assert dataset.graph.is_symmetric
    matrix = dataset.features.to_matrix() if isinstance(dataset.features, Columns) else dataset.features
    np.testing.assert_allclose(matrix, [[1, 0.5], [2, 1.5], [3, 2.5], [4, -0.3]])
    (split,) = dataset.fixed_splits["fixed"]
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0], [1], [3])
    assert node_split(dataset, "clean").hash == split.hash


@pytest.mark.parametrize("variant", ["csv", "tsv", "quoted", "crlf", "bom", "spaces", "blank lines", "no last newline"])
def test_text_tables(tmp_path, variant):
    change = {
        "csv": lambda text: text,
        "tsv": lambda text: text.replace(",", "\t"),
        "quoted": lambda text: "\n".join(
            ",".join(f'"{field}"' for field in line.split(",")) for line in text.splitlines()
        ),
        "crlf": lambda text: text.replace("\n", "\r\n"),
        "bom": lambda text: "\ufeff" + text,
        "spaces": lambda text: text.replace(",", " , "),
        "blank lines": lambda text: text.replace("\n", "\n\n"),
        "no last newline": lambda text: text.rstrip("\n"),
    }[variant]
    suffix = "tsv" if variant == "tsv" else "csv"
    edges, nodes = (write(tmp_path, f"{n}.{suffix}", change(t)) for n, t in (("edges", EDGES), ("nodes", NODES)))
    dataset = read_graph(edges, nodes)
    check(dataset)
    assert dataset.name == "edges"
    assert dataset.column_names == ["age", "height"]
    assert dataset.spec is None


def frames(tmp_path):
    return (
        pd.read_csv(write(tmp_path, "edges.csv", EDGES)),
        pd.read_csv(write(tmp_path, "nodes.csv", NODES)),
    )


def test_parquet_and_frames(tmp_path):
    edges, nodes = frames(tmp_path)
    edges.to_parquet(tmp_path / "edges.parquet")
    nodes.to_parquet(tmp_path / "nodes.parquet")
    check(read_graph(tmp_path / "edges.parquet", tmp_path / "nodes.parquet"))
    check(read_graph(edges, nodes))


@pytest.mark.parametrize("as_file", [False, True])
def test_networkx_and_graphml(tmp_path, as_file):
    edges, nodes = frames(tmp_path)
    graph = networkx.Graph()
    for row in nodes.to_dict("records"):
        graph.add_node(row.pop("id"), **{key: value for key, value in row.items() if value == value})
    graph.add_edges_from(edges.itertuples(index=False))
    if as_file:
        networkx.write_graphml(graph, tmp_path / "graph.graphml")
        check(read_graph(tmp_path / "graph.graphml"))
    else:
        check(read_graph(graph))


def test_networkx_with_vectors():
    graph = networkx.path_graph(3)
    for node in graph:
        graph.nodes[node]["x"] = [node, 2 * node]
    dataset = read_graph(graph)
    assert dataset.features.to_matrix().tolist() == [[0, 0], [1, 2], [2, 4]]
    assert dataset.column_names == ["x0", "x1"]
    graph.nodes[1]["x"] = [1]
    with pytest.raises(DataError, match="column x: vectors of different lengths"):
        read_graph(graph)


def test_scipy_arrays_and_pyg(tmp_path):
    from torch_geometric.data import Data

    _, nodes = frames(tmp_path)
    pairs = np.array([[0, 1, 2, 3], [1, 2, 0, 2]])
    check(read_graph(coo_matrix((np.ones(4), pairs), shape=(4, 4)), nodes))
    check(read_graph(pairs, nodes))
    check(read_graph(torch.from_numpy(pairs), nodes))
    x = torch.tensor([[1, 0.5], [2, 1.5], [3, 2.5], [4, -0.3]])
    mask = torch.tensor([True, False, False, False])
    data = Data(
        x=x,
        edge_index=torch.from_numpy(pairs),
        y=torch.tensor([1, 0, -1, 1]),
        train_mask=mask,
        val_mask=mask.roll(1),
        test_mask=mask.roll(3),
    )
    dataset = read_graph(data)
    torch.testing.assert_close(dataset.features, x)
    assert dataset.labels.tolist() == [1, 0, -1, 1]
    assert dataset.graph.undirected_edges.tolist() == [[0, 0, 1, 2], [1, 2, 2, 3]]
    (split,) = dataset.fixed_splits["fixed"]
    assert (split.train.tolist(), split.val.tolist(), split.test.tolist()) == ([0], [1], [3])
    data.train_mask = data.val_mask = data.test_mask = mask[:, None].repeat(1, 5)
    assert len(read_graph(data).fixed_splits["fixed"]) == 5
    check(read_graph(data, nodes))


def test_neutral_npz_keeps_ids(tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0, 1], [1, 2]]), ids=np.array(["a", "b", "c"]), y=[0, 1, -1])
    dataset = read_graph(tmp_path / "g.npz")
    assert dataset.ids == ["a", "b", "c"]
    assert dataset.meta["features"] == "identity"


def test_edges_alone(tmp_path):
    dataset = read_graph(write(tmp_path, "e.csv", "from,to,colour\n10,9,1\n9,2,1\n"))
    assert dataset.ids == ["2", "9", "10"], "integers are put in order"
    assert dataset.graph.undirected_edges.tolist() == [[0, 1], [1, 2]]
    assert dataset.meta["unused_columns"] == ["colour"]
    named = read_graph(write(tmp_path, "f.csv", "source,target\nz,y\nx,z\n"))
    assert named.ids == ["z", "y", "x"], "names are in order of appearance"
    assert named.labels is None
    assert read_graph(write(tmp_path, "g.csv", "0,1\n1,2\n")).num_nodes == 3, "no header is needed for numbers"


def test_ids_are_kept_as_written(tmp_path):
    edges = write(tmp_path, "e.csv", "source,target\n007,7\n7,1e3\n")
    dataset = read_graph(edges)
    assert sorted(dataset.ids) == ["007", "1e3", "7"]
    big = read_graph(write(tmp_path, "big.csv", "source,target\n7,99999999999999999999\n7,18446744073709551615\n"))
    assert sorted(big.ids) == ["18446744073709551615", "7", "99999999999999999999"]
    nodes = write(tmp_path, "n.csv", "id,a\n7,1\n007,2\n1e3,3\n")
    assert read_graph(edges, nodes).ids == ["7", "007", "1e3"]


def test_directed_graphs_on_request(tmp_path):
    edges = write(tmp_path, "e.csv", "source,target\n0,1\n1,1\n0,1\n")
    assert read_graph(edges, undirected=False).graph.edge_index.tolist() == [[0], [1]]


def test_classes_that_are_numbers_are_in_numerical_order(tmp_path):
    edges = write(tmp_path, "e.csv", "source,target\n0,1\n")
    nodes = write(tmp_path, "n.csv", "id,label\n0,10\n1,9\n2,-3\n")
    assert read_graph(edges, nodes).class_names == ["-3", "9", "10"]


@pytest.mark.parametrize(
    ("edges", "nodes", "words"),
    [
        ("source,target\na,b\na\n", None, r"edges\.csv, line 3: expected 2 fields, got 1"),
        ("source,target\na,b\n\na,b,c\n", None, r"edges\.csv, line 4: expected 2 fields, got 3"),
        ("source,target\na,\n", None, r"edges\.csv, line 2, column target: expected a node, got nothing"),
        ("source,goal\na,b\n", None, r"edges\.csv, line 1: expected columns source,target, got source, goal"),
        ("source,source\na,b\n", None, r"edges\.csv, line 1, column 2: two columns are called 'source'"),
        ("source,target\n", None, r"edges\.csv: the table has no edges"),
        ("", None, r"edges\.csv: the file is empty"),
        ('source,target\n"a,b\n', None, r"edges\.csv, line 2: quotes do not match"),
        (b"source,target\na,\xff\n", None, r"edges\.csv, line 2, column 2: not UTF-8"),
        ("source,target\na,b\rc,d\n", None, r"edges\.csv, line 2, column 2: a carriage return"),
        (b"source,target\na,b\n\x00,b\n", None, r"edges\.csv, line 3, column 1: a NUL byte"),
        (EDGES + "\nanna,emil\n", NODES, r"edges\.csv, line 7, column target: node 'emil' is not in .*nodes\.csv"),
        (EDGES, NODES + "anna,red,,1,2\n", r"nodes\.csv, line 6, column id: node 'anna' was there already \(line 2\)"),
        (EDGES, NODES + "emil,red,,inf,2\n", r"line 6, column age: expected a finite number, got 'inf'"),
        (EDGES, NODES + "emil,red,,1e400,2\n", r"line 6, column age: expected a finite number, got '1e400'"),
        ("source,target,weight\na,b,0\n", None, r"line 2, column weight: a weight is a positive number, got '0'"),
        ("source,target,weight\na,b,1\nb,c,\n", None, r"line 3, column weight: .* got nothing"),
        ("source,target,weight\na,b,much\n", None, r"line 2, column weight: .* got 'much'"),
        ("source,target,weight\na,b,inf\n", None, r"line 2, column weight: .* got 'inf'"),
        (
            EDGES,
            NODES + "emil,red,exam,1,2\n",
            r"line 6, column split: expected train, val, test or nothing, got 'exam'",
        ),
        (EDGES, NODES + "emil,,train,1,2\n", r"line 6, column label: a node of the train part has no label"),
        (EDGES, NODES.replace("val,", ","), r"nodes\.csv, column split: no node is marked val"),
        (EDGES, NODES.replace("id,", "name,"), r"nodes\.csv, line 1: expected a column id, got name"),
        (EDGES, "id,label\n", r"nodes\.csv: the table has no nodes"),
    ],
)
def test_errors_name_file_line_and_column(tmp_path, edges, nodes, words):
    edges = write(tmp_path, "edges.csv", edges)
    nodes = None if nodes is None else write(tmp_path, "nodes.csv", nodes)
    with pytest.raises(DataError, match=words):
        read_graph(edges, nodes)


def test_lines_are_counted_right_with_quotes_over_several_lines(tmp_path):
    edges = write(tmp_path, "edges.csv", 'source,target\n"a\nb",c\nd,e,f\n')
    with pytest.raises(DataError, match="line 4: expected 2 fields, got 3"):
        read_graph(edges)


def test_what_cannot_be_a_graph(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_graph(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        read_graph(tmp_path / "folder.csv")
    with pytest.raises(DataError, match=r"cannot tell the format from '\.xlsx'"):
        read_graph(tmp_path / "table.xlsx")
    with pytest.raises(DataError, match="cannot read a graph from int"):
        read_graph(3)
    with pytest.raises(DataError, match="must be square"):
        read_graph(coo_matrix(np.ones((2, 3))))
    with pytest.raises(DataError, match="lists 2 nodes, the graph has 3"):
        read_graph(networkx.path_graph(3), pd.DataFrame({"id": [1, 2]}))
    with pytest.raises(DataError, match="node '7' is not in the graph"):
        read_graph(networkx.path_graph(3), pd.DataFrame({"id": [1, 2, 7]}))


def test_a_million_rows_take_the_fast_path(tmp_path):
    """Not a timing: an integer table of any size must be read without a Python object per cell."""
    from hgde.data.io.tables import read_table

    path = write(tmp_path, "e.csv", "source,target\n" + "12,345\n" * 1000)
    assert read_table(path).columns["source"].dtype == np.int64


# --- weights, columns by name, targets


WEIGHTED = "from_,to_,w\nanna,béla,2\nbéla,carl,0.5\ncarl,béla,0.25\ndora,carl,1e3\ndora,carl,1\n"


@pytest.mark.parametrize("undirected", [True, False])
def test_weights(tmp_path, undirected):
    edges = write(tmp_path, "e.csv", WEIGHTED)
    dataset = read_graph(edges, source_column="from_", target_column="to_", weight_column="w", undirected=undirected)
    dense = dataset.graph.to_scipy(weighted=True).toarray()
    place = {name: number for number, name in enumerate(dataset.ids)}
    assert dense[place["béla"], place["anna"]] == 2
    assert dense[place["carl"], place["béla"]] == 0.5
    assert dense[place["béla"], place["carl"]] == (0.5 if undirected else 0.25)
    assert dense[place["carl"], place["dora"]] == 1001
    assert "unused_columns" not in dataset.meta


def test_a_column_called_weight_is_the_weight(tmp_path):
    assert read_graph(write(tmp_path, "e.csv", "source,target,Weight\n0,1,3\n")).graph.weights.tolist() == [3, 3]
    frame = pd.DataFrame({"source": [0, 1], "target": [1, 2], "weight": [1.5, 2]})
    frame.to_parquet(tmp_path / "e.parquet")
    assert read_graph(tmp_path / "e.parquet").graph.weights.tolist() == [1.5, 1.5, 2, 2]


def test_weights_of_objects():
    graph = networkx.DiGraph()
    graph.add_edge("a", "b", weight=2.0, cost=7)
    graph.add_edge("b", "c", weight=3.0, cost=8)
    assert read_graph(graph, undirected=False).graph.weights.tolist() == [2, 3]
    assert read_graph(graph, undirected=False, weight_column="cost").graph.weights.tolist() == [7, 8]
    graph.add_edge("c", "d")
    with pytest.raises(DataError, match="2 of 3 edges have the attribute 'weight'"):
        read_graph(graph)
    pairs = np.array([[0, 1], [1, 2]])
    assert read_graph(coo_matrix(([2.0, 3.0], pairs), shape=(3, 3))).graph.weights.tolist() == [2, 2, 3, 3]
    assert read_graph(coo_matrix(([1.0, 1.0], pairs), shape=(3, 3))).graph.weights is None
    with pytest.raises(DataError, match="weights are positive"):
        read_graph(coo_matrix(([2.0, -3.0], pairs), shape=(3, 3)))


@pytest.mark.parametrize("packing", ["gz", "zst"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "graphml"])
def test_packed_files(tmp_path, packing, kind):
    import gzip

    if packing == "zst":
        zstandard = pytest.importorskip("zstandard", reason="an optional package reads .zst")
        pack = zstandard.ZstdCompressor().compress
    else:
        pack = gzip.compress
    if kind == "graphml":
        graph = networkx.path_graph(3)
        networkx.write_graphml(graph, tmp_path / "g.graphml")
        packed = write(tmp_path, f"g.graphml.{packing}", pack((tmp_path / "g.graphml").read_bytes()))
        assert read_graph(packed).num_nodes == 3
        return
    texts = [text.replace(",", "\t") if kind == "tsv" else text for text in (EDGES, NODES)]
    edges, nodes = (
        write(tmp_path, f"{name}.{kind}.{packing}", pack(text.encode()))
        for name, text in zip(("edges", "nodes"), texts, strict=True)
    )
    dataset = read_graph(edges, nodes)
    check(dataset)
    assert dataset.name == "edges"
    edges.write_bytes(edges.read_bytes()[:-9])
    with pytest.raises(DataError, match=rf"edges\.{kind}\.{packing}: not a readable"):
        read_graph(edges, nodes)


@pytest.mark.parametrize(("delimiter", "mark"), [(";", ";"), ("tab", "\t"), ("space", " "), ("|", "|"), ("\\t", "\t")])
def test_delimiters(tmp_path, delimiter, mark):
    edges, nodes = (write(tmp_path, n, t.replace(",", mark)) for n, t in (("e.dat", EDGES), ("n.dat", NODES)))
    check(read_graph(edges, nodes, delimiter=delimiter))
    with pytest.raises(DataError, match=r"cannot tell the format from '\.dat'"):
        read_graph(edges, nodes)
    with pytest.raises(DataError, match="one character"):
        read_graph(edges, nodes, delimiter=";;")


def test_columns_by_name(tmp_path):
    rename = {"id,label,split": "who,kind,role"}
    nodes = write(tmp_path, "n.csv", NODES.replace(*next(iter(rename.items()))))
    edges = write(tmp_path, "e.csv", EDGES.replace("source,target", "begin,end"))
    names = {"id_column": "who", "label_column": "kind", "split_column": "role"}
    ends = {"source_column": "begin", "target_column": "end"}
    check(read_graph(edges, nodes, **names, **ends))
    for column in (*names, *ends):
        with pytest.raises(DataError, match="expected a column nowhere, got"):
            read_graph(edges, nodes, **{**names, **ends, column: "nowhere"})
    for column in names:
        with pytest.raises(DataError, match=f"{column} names a column of the table of nodes, and none is given"):
            read_graph(edges, **ends, **{column: "x"})


def test_the_most_certain_name_wins_wherever_its_column_stands(tmp_path):
    edges = write(tmp_path, "e.csv", "u,Target,source\n0,1,2\n")
    nodes = write(tmp_path, "n.csv", "node,x,y,Label,id\n7,0.1,0.2,a,0\n8,0.3,0.4,b,1\n9,0.5,0.6,b,2\n")
    found = read_graph(edges, nodes)
    assert found.class_names == ["a", "b"]
    assert found.column_names == ["node", "x", "y"]
    assert found.graph.edge_index.tolist() in ([[2, 1], [1, 2]], [[1, 2], [2, 1]])


def targets(tmp_path, columns, **options):
    table = pd.DataFrame(columns)
    table.insert(0, "id", range(len(table)))
    nodes = tmp_path / "n.csv"
    table.to_csv(nodes, index=False)
    edges = write(tmp_path, "e.csv", "source,target\n0,1\n")
    from_file, from_frame = read_graph(edges, nodes, **options), read_graph(edges, table, **options)
    for key in ("labels", "values", "label_sets"):
        one, other = getattr(from_file, key), getattr(from_frame, key)
        assert (one is None) == (other is None)
        assert one is None or torch.equal(one.nan_to_num(9), other.nan_to_num(9))
    assert from_file.class_names == from_frame.class_names
    return from_file


def test_words_are_classes_and_nothing_else(tmp_path):
    dataset = targets(tmp_path, {"label": ["b", None, "a"]})
    assert dataset.labels.tolist() == [1, -1, 0]
    assert dataset.values is None
    assert dataset.label_sets is None
    assert dataset.target_names == ["label"]


def test_numbers_are_classes_or_values_as_the_task_likes(tmp_path):
    dataset = targets(tmp_path, {"label": [0.5, None, 2.25, 0.5]})
    assert dataset.values[[0, 2, 3], 0].tolist() == [0.5, 2.25, 0.5]
    assert bool(dataset.values[1].isnan())
    assert dataset.labels.tolist() == [0, -1, 1, 0]
    assert dataset.class_names == ["0.5", "2.25"]
    assert dataset.target_column().texts == ["0.5", "", "2.25", "0.5"]


@pytest.mark.parametrize("form", ["a,b", ("a", "b")])
def test_several_columns_of_yes_and_no(tmp_path, form):
    dataset = targets(tmp_path, {"a": [1, 0, None], "b": [True, False, True], "x": [1, 2, 3]}, label_column=form)
    assert dataset.label_sets.tolist() == [[1, 1], [0, 0], [-1, 1]]
    assert dataset.label_sets.dtype == torch.int8
    assert dataset.target_names == ["a", "b"]
    assert dataset.labels is None
    assert dataset.column_names == ["x"]


def test_several_columns_of_numbers(tmp_path):
    dataset = targets(tmp_path, {"a": [1.5, 0, 2], "b": [1, None, 3]}, label_column="a,b")
    assert dataset.values[0].tolist() == [1.5, 1]
    assert dataset.label_sets is None
    with pytest.raises(DataError, match="line 3, column b: several label columns hold 0 and 1, or numbers, got 'x'"):
        targets(tmp_path, {"a": [1, 0], "b": ["1", "x"]}, label_column="a,b")


def test_feature_columns_keep_kinds_and_gaps(tmp_path):
    nodes = write(tmp_path, "n.csv", "id,x,colour,ok\n0,1.5,red,true\n1,,,false\n")
    features = read_graph(write(tmp_path, "e.csv", "source,target\n0,1\n"), nodes).features
    assert {name: column.kind for name, column in features.items()} == {
        "x": "number",
        "colour": "category",
        "ok": "boolean",
    }
    assert features["x"].missing.tolist() == features["colour"].missing.tolist() == [False, True]


def test_a_table_of_nodes_belongs_to_a_networkx_graph_by_name(tmp_path):
    _, nodes = frames(tmp_path)
    edges, _ = frames(tmp_path)
    graph = networkx.Graph(list(edges.itertuples(index=False))[::-1])
    assert list(graph.nodes) != IDS
    check(read_graph(graph, nodes))
    clash = networkx.Graph([(1, "1")])
    with pytest.raises(DataError, match="two nodes are called '1' when written as text"):
        read_graph(clash)


def test_values_in_the_neutral_form(tmp_path):
    base = {"edge_index": np.array([[0, 1], [1, 2]]), "edge_weight": np.array([2.0, 3.0])}
    np.savez(tmp_path / "v.npz", **base, y=np.array([0.5, np.nan, 2]))
    dataset = read_graph(tmp_path / "v.npz", undirected=False)
    assert dataset.graph.weights.tolist() == [2, 3]
    assert dataset.values.shape == (3, 1)
    assert dataset.labels is None
    np.savez(tmp_path / "s.npz", **base, y=np.array([[1, 0], [0, 1], [-1, -1]]))
    assert read_graph(tmp_path / "s.npz").label_sets.tolist() == [[1, 0], [0, 1], [-1, -1]]
    with pytest.raises(DataError, match=r"id_column has no effect on a \.npz file"):
        read_graph(tmp_path / "s.npz", id_column="x")


def test_an_empty_split_column_says_nothing(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    (tmp_path / "nodes.csv").write_text("id,label,split,x\na,u,,1\nb,v,,2\n")
    dataset = read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv")
    assert dataset.fixed_splits == {}
    assert dataset.column_names == ["x"]
