"""Ollivier–Ricci curvature: closed forms, an exact solver, the cache."""

import networkx as nx
import numpy as np
import pytest
import torch

from hgde.graph import Graph
from hgde.graph.measures import ricci
from hgde.graph.measures.ricci import ollivier_ricci


def graph_of(source: nx.Graph) -> Graph:
    numbered = nx.convert_node_labels_to_integers(source)
    return Graph.from_edges(list(numbered.edges), numbered.number_of_nodes())


def by_transport(source: nx.Graph, alpha: float) -> dict[tuple[int, int], float]:
    ot = pytest.importorskip("ot", reason="POT is the independent implementation it is compared with")
    distance = dict(nx.all_pairs_shortest_path_length(source))
    result = {}
    for u, v in source.edges:
        at_u, at_v = [u, *source[u]], [v, *source[v]]
        m_u, m_v = (np.array([alpha] + [(1 - alpha) / (len(a) - 1)] * (len(a) - 1)) for a in (at_u, at_v))
        cost = np.array([[distance[a][b] for b in at_v] for a in at_u], dtype=float)
        result[u, v] = result[v, u] = 1 - ot.emd2(m_u, m_v, cost)
    return result


# Lin, Lu and Yau: for alpha-lazy walks complete graphs have n/(n-1) (1-alpha), hypercubes 2/n (1-alpha).
@pytest.mark.parametrize("alpha", [0.5, 0.75])
@pytest.mark.parametrize(
    ("source", "limit"),
    [
        (nx.complete_graph(3), 3 / 2),
        (nx.complete_graph(7), 7 / 6),
        (nx.cycle_graph(4), 1.0),
        (nx.cycle_graph(5), 0.5),
        (nx.cycle_graph(6), 0.0),
        (nx.cycle_graph(9), 0.0),
        (nx.hypercube_graph(3), 2 / 3),
        (nx.hypercube_graph(4), 2 / 4),
    ],
)
def test_closed_forms(source, limit, alpha):
    curvature = ollivier_ricci(graph_of(source), alpha)
    torch.testing.assert_close(curvature, torch.full_like(curvature, (1 - alpha) * limit), rtol=0, atol=1e-12)


def test_trees():
    tree = nx.random_labeled_tree(60, seed=2)
    graph = graph_of(tree)
    d = graph.degree.double()
    expected = 0.5 * (2 / d[graph.rows] + 2 / d[graph.indices] - 2)
    torch.testing.assert_close(ollivier_ricci(graph), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_equals_an_exact_solver(seed, alpha):
    sources = (
        nx.gnp_random_graph(22, 0.1 + 0.1 * seed, seed=seed),
        nx.barabasi_albert_graph(40, 1 + seed, seed=seed),
        nx.windmill_graph(3 + seed, 4),
        nx.karate_club_graph(),
    )
    for source in sources:
        graph, expected = graph_of(source), by_transport(source, alpha)
        found = ollivier_ricci(graph, alpha)
        reference = [expected[i, j] for i, j in zip(graph.rows.tolist(), graph.indices.tolist(), strict=True)]
        np.testing.assert_allclose(found.numpy(), reference, rtol=0, atol=1e-12)


def test_hub_with_more_neighbours_than_a_word_has_bits():
    source = nx.barabasi_albert_graph(300, 3, seed=0)
    source.add_edges_from((0, n) for n in range(1, 200))
    source.add_edges_from((1, n) for n in range(100, 280))
    graph = graph_of(source)
    hubs = ((graph.rows == 0) & (graph.indices == 1)).nonzero().item()
    part = source.subgraph({0, 1, *source[0], *source[1], *(m for n in (0, 1) for k in source[n] for m in source[k])})
    assert ollivier_ricci(graph)[hubs] == pytest.approx(by_transport_of_one(part), abs=1e-12)


def by_transport_of_one(source: nx.Graph) -> float:
    only = nx.Graph(source)
    ot = pytest.importorskip("ot", reason="POT is the independent implementation it is compared with")
    distance = {n: nx.single_source_shortest_path_length(only, n) for n in [0, *only[0]]}
    at_u, at_v = [0, *only[0]], [1, *only[1]]
    m_u, m_v = (np.array([0.5] + [0.5 / (len(a) - 1)] * (len(a) - 1)) for a in (at_u, at_v))
    cost = np.array([[distance[a][b] for b in at_v] for a in at_u], dtype=float)
    return float(1 - ot.emd2(m_u, m_v, cost))


def test_threads_direction_repeats_and_loops_do_not_matter():
    source = nx.karate_club_graph()
    simple = ollivier_ricci(graph_of(source))
    pairs = torch.tensor(list(source.edges)).T
    untidy = Graph.from_edges(
        torch.cat([pairs, pairs.flip(0), pairs, torch.tensor([[3], [3]])], 1),
        34,
        undirected=False,
        self_loops=True,
        merge_duplicates=False,
    )
    found = ollivier_ricci(untidy)
    loop = untidy.rows == untidy.indices
    assert found[loop].tolist() == [0.0]
    plain = graph_of(source)
    lookup = dict(zip(zip(plain.rows.tolist(), plain.indices.tolist(), strict=True), simple.tolist(), strict=True))
    pairs_found = zip(untidy.rows[~loop].tolist(), untidy.indices[~loop].tolist(), strict=True)
    assert found[~loop].tolist() == [lookup[pair] for pair in pairs_found]


def test_small_graphs_and_all_mass_at_rest():
    assert ollivier_ricci(Graph.from_edges([], 0)).shape == (0,)
    assert ollivier_ricci(Graph.from_edges([], 3)).shape == (0,)
    assert ollivier_ricci(Graph.from_edges([(0, 1)])).tolist() == [1.0, 1.0]
    assert ollivier_ricci(graph_of(nx.cycle_graph(4)), 1.0).tolist() == [0.0] * 8
    with pytest.raises(ValueError, match="alpha is the share"):
        ollivier_ricci(Graph.from_edges([(0, 1)]), 1.5)


def test_want_of_memory_is_said(monkeypatch):
    kernel = ricci.function("transport.curvatures", "float64")

    class Greedy:
        def call(self, *given):
            kernel.call(*given[:8], 2**58, *given[9:])

    monkeypatch.setattr(ricci, "function", lambda *name: Greedy())
    with pytest.raises(MemoryError, match="two hubs"):
        ollivier_ricci(graph_of(nx.karate_club_graph()))


def test_results_are_kept_when_asked_and_a_damaged_file_is_set_aside(tmp_path, monkeypatch, caplog):
    graph = graph_of(nx.karate_club_graph())
    first = ollivier_ricci(graph, cache_dir=tmp_path, cache=True)
    (stored,) = (tmp_path / "ricci").iterdir()
    assert graph.hash[:32] in stored.name
    with monkeypatch.context() as patched:
        patched.setattr("hgde.graph.measures.ricci._curvatures", None)
        assert torch.equal(ollivier_ricci(graph, cache_dir=tmp_path, cache=True), first)
        weighted = Graph.from_edges(graph.edge_index, 34, torch.rand(graph.num_edges) + 1)
        assert torch.equal(ollivier_ricci(weighted, cache_dir=tmp_path, cache=True), first), "weights play no part"
    whole = stored.read_bytes()
    for damage in (b"half a file", whole[:-40], b""):
        stored.write_bytes(damage)
        caplog.clear()
        assert torch.equal(ollivier_ricci(graph, cache_dir=tmp_path, cache=True), first)
        assert "set aside" in caplog.text
        assert stored.with_name(f"{stored.name}.damaged").read_bytes() == damage
        assert stored.read_bytes() == whole
    ollivier_ricci(graph, 0.25, cache_dir=tmp_path)
    assert len(list((tmp_path / "ricci").glob("*.npz"))) == 2


def test_a_stored_result_of_the_wrong_size_or_type_is_not_believed(tmp_path):
    graph = graph_of(nx.karate_club_graph())
    first = ollivier_ricci(graph, cache_dir=tmp_path, cache=True)
    (stored,) = (tmp_path / "ricci").iterdir()
    for wrong in (np.zeros(3), np.full(graph.num_edges, np.nan), np.zeros(graph.num_edges, dtype=np.float32)):
        np.savez(stored, curvature=wrong)
        assert torch.equal(ollivier_ricci(graph, cache_dir=tmp_path, cache=True), first)


def test_graphs_that_nobody_asked_to_keep_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("HGDE_CACHE", str(tmp_path))
    graph = graph_of(nx.karate_club_graph())
    for hidden in range(3):
        ollivier_ricci(graph.keep_edges(torch.arange(graph.num_edges) != hidden))
    assert not (tmp_path / "ricci").exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "ricci").write_text("a file where the folder should be")
    graph = Graph.from_edges([(0, 1)])
    assert ollivier_ricci(graph, cache_dir=tmp_path, cache=True).tolist() == [1.0, 1.0]
