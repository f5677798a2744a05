"""200 mangled files: each ends in exactly one clear error, from the library and from the command line."""

import io
from collections import Counter

import networkx
import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from hgde.cli import info
from hgde.data import DataError, Preprocessor, read_graph

NUM_FILES = 200
NUM_NODES = 12


def edge_lines(random):
    pairs = random.randint(0, NUM_NODES, (30, 2))
    return ["source,target", *(f"n{u},n{v}" for u, v in pairs)]


def node_lines(random):
    parts = ["train", "val", "test", ""]
    rows = [f"n{i},c{i % 3},{parts[i % 4]},{random.randn():.4f},{random.randn():.4f}" for i in range(NUM_NODES)]
    return ["id,label,split,f0,f1", *rows]


def some_line(random, lines):
    return int(random.randint(1, len(lines)))


def set_field(lines, line, column, value):
    fields = lines[line].split(",")
    fields[column] = value
    lines[line] = ",".join(fields)
    return line + 1


def text_mistake(random, lines):
    """A mistake any table can have; returns bytes and the line it is on, if it has one."""
    line = some_line(random, lines)
    kind = random.randint(8)
    if kind == 0:
        lines[line] = lines[line].rsplit(",", 1)[0]
    elif kind == 1:
        lines[line] += ",extra"
    elif kind == 2:
        lines[line] = '"' + lines[line]
    elif kind == 3:
        line = set_field(lines, 0, 0, "") - 1
    elif kind == 4:
        line = set_field(lines, 0, 1, lines[0].split(",")[0]) - 1
    elif kind == 5:
        return b"", None
    raw = [text.encode() for text in lines]
    if kind >= 6:
        place = random.randint(len(raw[line]))
        raw[line] = raw[line][:place] + (b"\xff\xfe" if kind == 6 else b"\x00") + raw[line][place:]
    return b"\n".join(raw) + b"\n", line + 1


def mangled_edges(random, folder):
    lines = edge_lines(random)
    kind = random.randint(5)
    where = None
    if kind == 0:
        where = set_field(lines, some_line(random, lines), int(random.randint(2)), f"n{NUM_NODES + random.randint(9)}")
    elif kind == 1:
        where = set_field(lines, some_line(random, lines), int(random.randint(2)), "")
    elif kind == 2:
        where = set_field(lines, 0, int(random.randint(2)), "somewhere")
    if kind <= 2:
        content = "\n".join(lines).encode()
    else:
        content, where = text_mistake(random, lines)
    return table_files(random, folder, content, "\n".join(node_lines(random)).encode(), "edges", where)


def mangled_nodes(random, folder):
    lines = node_lines(random)
    line = some_line(random, lines)
    kind = random.randint(9)
    where = None
    if kind <= 2:
        where = set_field(lines, line, 3 + int(random.randint(2)), ["twelve", "-inf", "1e999"][random.randint(3)])
    elif kind == 3:
        where = set_field(lines, line, 0, "")
    elif kind == 4:
        lines.append(lines[line])
        where = len(lines)
    elif kind == 5:
        where = set_field(lines, line, 2, "holdout")
    elif kind == 6:
        where = set_field(lines, 0, 0, "key")
    if kind <= 6:
        content = "\n".join(lines).encode()
    else:
        content, where = text_mistake(random, lines)
    return table_files(random, folder, "\n".join(edge_lines(random)).encode(), content, "nodes", where)


def table_files(random, folder, edges, nodes, wrong, where):
    suffix = "csv"
    if random.randint(3) == 0:
        suffix, edges, nodes = "tsv", edges.replace(b",", b"\t"), nodes.replace(b",", b"\t")
    paths = {"edges": folder / f"edges.{suffix}", "nodes": folder / f"nodes.{suffix}"}
    paths["edges"].write_bytes(edges)
    paths["nodes"].write_bytes(nodes)
    return paths["edges"], paths["nodes"], paths[wrong].name, where


def mangled_parquet(random, folder):
    nodes = pd.read_csv(io.StringIO("\n".join(node_lines(random))))
    edges = pd.read_csv(io.StringIO("\n".join(edge_lines(random))))
    kind = random.randint(6)
    row = int(random.randint(NUM_NODES))
    wrong = "nodes"
    if kind == 0:
        nodes.loc[row, "id"] = None
    elif kind == 1:
        nodes["f1"] = nodes["f1"].astype(object)
        nodes.loc[row, "f1"] = "tall"
        nodes["f1"] = nodes["f1"].astype(str)
    elif kind == 2:
        nodes.loc[row, "f0"] = np.inf
    elif kind == 3:
        edges, wrong = edges.rename(columns={"target": "goal"}), "edges"
    paths = {"edges": folder / "edges.parquet", "nodes": folder / "nodes.parquet"}
    edges.to_parquet(paths["edges"])
    nodes.to_parquet(paths["nodes"])
    if kind >= 4:
        wrong = ["edges", "nodes"][kind - 4]
        whole = paths[wrong].read_bytes()
        paths[wrong].write_bytes(whole[: random.randint(1, len(whole))])
    return paths["edges"], paths["nodes"], paths[wrong].name, row + 1 if kind <= 2 else None


def mangled_npz(random, folder):
    x = random.randn(NUM_NODES, 4)
    arrays = {"edge_index": random.randint(0, NUM_NODES, (2, 30)), "x": x, "y": random.randint(0, 3, NUM_NODES)}
    kind = random.randint(13)
    if kind == 0:
        arrays["edge_index"] = arrays["edge_index"].T
    elif kind == 1:
        arrays["edge_index"] = arrays["edge_index"] + 0.5
    elif kind == 2:
        arrays["edge_index"][random.randint(2), random.randint(30)] = NUM_NODES + random.randint(5)
    elif kind == 3:
        arrays["edge_index"][random.randint(2), random.randint(30)] = -1
    elif kind == 4:
        arrays["y"] = arrays["y"][: -random.randint(1, 5)]
    elif kind == 5:
        arrays["x"][random.randint(NUM_NODES), random.randint(4)] = [np.nan, np.inf][random.randint(2)]
    elif kind == 6:
        arrays["y"] = arrays["y"].astype(object)
    elif kind == 7:
        arrays["y"] = arrays["y"] * 1j
    elif kind == 8:
        arrays["train_mask"] = arrays["val_mask"] = arrays["test_mask"] = np.ones((2, NUM_NODES + 1), dtype=bool)
    elif kind == 9:
        del arrays["x"]
        indptr = np.array([0, 9])
        arrays |= {"feat_data": np.ones(3), "feat_indices": np.arange(3), "feat_indptr": indptr, "feat_shape": x.shape}
    elif kind == 10:
        arrays = {"unrelated": np.arange(3)}
    path = folder / "graph.npz"
    np.savez_compressed(path, **arrays)
    whole = path.read_bytes()
    if kind == 11:
        path.write_bytes(whole[: random.randint(0, len(whole) - 22)])
    elif kind == 12:
        path.write_bytes(random.bytes(200))
    return path, None, path.name, None


def mangled_graphml(random, folder):
    graph = networkx.gnm_random_graph(NUM_NODES, 20, seed=int(random.randint(1000)))
    for node in graph:
        graph.nodes[node]["f0"] = float(random.randn())
        graph.nodes[node]["label"] = f"c{node % 3}"
    path = folder / "graph.graphml"
    networkx.write_graphml(graph, path)
    text = path.read_text()
    kind = random.randint(5)
    if kind == 0:
        text = text[: random.randint(1, len(text) - 20)]
    elif kind == 1:
        text = text.replace("</node>", "</nodes>", 1)
    elif kind == 2:
        key = graph.nodes[0]["f0"]
        text = text.replace(f">{key}<", ">a lot<", 1)
    elif kind == 3:
        text = "<html><body>not a graph</body></html>"
    else:
        text = (
            text.replace("<node ", "<vertex ").replace("</node>", "</vertex>").split("<edge")[0] + "</graph></graphml>"
        )
    path.write_text(text)
    return path, None, path.name, None


MANGLERS = [mangled_edges, mangled_nodes, mangled_edges, mangled_nodes, mangled_parquet, mangled_npz, mangled_graphml]


@pytest.fixture(scope="module")
def app():
    application = typer.Typer(pretty_exceptions_enable=False)
    application.command("info")(info.info)
    application.command("nothing")(lambda: None)  # with a single command typer would drop its name
    return application


@pytest.mark.parametrize("number", range(NUM_FILES))
def test_a_mangled_file_gives_one_clear_error(number, app, tmp_path):
    random = np.random.RandomState(number)
    edges, nodes, wrong, line = MANGLERS[number % len(MANGLERS)](random, tmp_path)
    try:
        dataset, message = read_graph(edges, nodes), ""
    except DataError as error:
        message = str(error)
    if not message:
        # A word among numbers could be a category: only the preprocessing knows that it was not meant so.
        with pytest.raises(DataError) as caught:
            Preprocessor.fit(dataset)
        assert wrong in str(caught.value)
        assert line is None or any(f"{unit} {line}" in str(caught.value) for unit in ("line", "row", "node"))
        return
    assert wrong in message
    assert len(message.splitlines()) == 1
    assert len(message) < 400
    if line is not None:
        assert any(f"{unit} {line}" in message for unit in ("line", "row"))
    arguments = ["info", "--edges", str(edges), *(["--nodes", str(nodes)] if nodes else [])]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit), "an expected error leaves no exception behind"
    assert Counter(result.output.split())["error:"] == 1
    assert "Traceback" not in result.output
    assert message in result.output


def test_random_bytes_anywhere_load_or_end_in_a_data_error(tmp_path):
    random = np.random.RandomState(0)
    refused = 0
    for _ in range(300):
        contents = ["\n".join(make(random)).encode() for make in (edge_lines, node_lines)]
        chosen = random.randint(2)
        damaged = bytearray(contents[chosen])
        for place in random.randint(0, len(damaged), random.randint(1, 6)):
            damaged[place] = random.choice(np.frombuffer(b'\n\r",; \t\x00\xff0-.eE\\x#', dtype=np.uint8))
        contents[chosen] = bytes(damaged)
        (tmp_path / "edges.csv").write_bytes(contents[0])
        (tmp_path / "nodes.csv").write_bytes(contents[1])
        try:
            read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv")
        except DataError:
            refused += 1
    assert refused > 150
