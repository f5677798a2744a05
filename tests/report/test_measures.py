"""Numbers of a report against scikit-learn and by hand, and the files for other programs."""

import networkx
import numpy as np
import pytest
import torch
from sklearn import metrics

from hgde.geometry import ball
from hgde.report.export import write_gexf, write_graphml, write_projector
from hgde.report.figures import chords
from hgde.report.measures import (
    calibration_bins,
    class_scores,
    confusion_matrix,
    paired_difference,
    prediction_parts,
    top_weights,
    worst_mistakes,
)
from hgde.report.views import make_disk_view
from report.samples import CLASSES, HOSTILE, sample_view, tree_in_ball


def labelled(count=200, classes=4):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, count)
    predictions = np.where(rng.random(count) < 0.7, labels, rng.integers(0, classes, count))
    return labels, predictions, rng.random(count)


def test_confusion_and_class_scores_are_those_of_scikit_learn():
    labels, predictions, _ = labelled()
    confusion = confusion_matrix(labels, predictions, 4)
    assert np.array_equal(confusion, metrics.confusion_matrix(labels, predictions))
    expected = metrics.precision_recall_fscore_support(labels, predictions)
    ours = np.array([[row.precision, row.recall, row.f1, row.support] for row in class_scores(confusion)]).T
    np.testing.assert_allclose(ours, np.array(expected))
    unknown = np.concatenate([labels, [-1]])
    assert confusion_matrix(unknown, np.append(predictions, 0), 4).sum() == len(labels)


def test_classes_never_seen_score_zero():
    rows = class_scores(np.array([[3, 0], [0, 0]]), ["a"])
    assert (rows[1].name, rows[1].precision, rows[1].recall, rows[1].f1) == ("class 1", 0.0, 0.0, 0.0)


def test_calibration_by_hand():
    bins = calibration_bins(np.array([0.05, 0.95, 0.95, 1.0]), np.array([0, 1, 1, 0]), bins=10)
    assert bins.counts == [1, 3]
    assert bins.accuracy == pytest.approx([0.0, 2 / 3])
    assert bins.error == pytest.approx((0.05 + 3 * abs(2 / 3 - 2.9 / 3)) / 4)


def test_worst_mistakes_come_first_with_their_neighbours():
    labels, predictions = np.array([0, 1, 1, -1]), np.array([1, 1, 0, 0])
    edges = np.array([[0, 2, 3], [2, 1, 2]])
    found = worst_mistakes(labels, predictions, np.array([0.6, 0.9, 0.8, 1.0]), edges=edges, class_names=["a", "b"])
    assert [mistake.node for mistake in found] == ["2", "0"]
    assert found[0].neighbours == [("0", "a", "b"), ("1", "b", "b"), ("3", "unlabelled", "a")]
    masked = worst_mistakes(labels, predictions, np.ones(4), among=np.array([True, False, False, False]))
    assert [mistake.node for mistake in masked] == ["0"]


def test_parts_of_a_report_count_only_what_is_asked():
    labels, predictions, confidences = labelled()
    labels[:50] = -1
    among = np.arange(len(labels)) % 2 == 0
    parts = prediction_parts(labels, predictions, confidences, class_names=["a", "b", "c", "d", "e"], among=among)
    assert parts["confusion"].shape == (5, 5)
    assert parts["confusion"].sum() == sum(parts["calibration"].counts) == (among & (labels >= 0)).sum()
    assert all(int(mistake.node) % 2 == 0 for mistake in parts["mistakes"])
    assert set(prediction_parts(labels, predictions)) == {"confusion", "class_names", "classes"}


def test_paired_difference_is_that_of_a_paired_test():
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(0)
    ours, theirs = rng.random(8), rng.random(8)
    mean, half = paired_difference(ours, theirs)
    interval = ttest_rel(ours, theirs).confidence_interval()
    assert (mean - half, mean + half) == pytest.approx((interval.low, interval.high))
    with pytest.raises(ValueError, match="same seeds"):
        paired_difference([1.0], [1.0, 2.0])


def test_top_weights_are_the_largest_of_each_row():
    rng = np.random.default_rng(0)
    dense = rng.random((6, 6)) * (rng.random((6, 6)) < 0.6)
    dense[3] = 0
    rows, columns = dense.nonzero()
    best = top_weights(rows, columns, dense[rows, columns], 6, k=2)
    for i in range(6):
        order = [j for j in np.argsort(-dense[i])[:2] if dense[i, j] > 0]
        assert [j for j in best.nodes[i] if j >= 0] == order
        np.testing.assert_allclose(best.values[i][: len(order)], dense[i, order])


def test_chords_are_geodesics():
    z = tree_in_ball(3, 3, 2)[0]
    a, b = z[:20], z[20:40]
    lines = torch.tensor(chords(a.numpy(), b.numpy()))
    total = ball.dist(a[:, None], lines, 1.0) + ball.dist(lines, b[:, None], 1.0)
    torch.testing.assert_close(total, ball.dist(a, b, 1.0)[:, None].expand_as(total), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", ["principal", "horopca"])
def test_views_of_several_times_share_one_projection(method):
    end = tree_in_ball(2, 3, 4)[0] / 2
    frames = torch.stack([0.5 * end, end])
    view = make_disk_view(frames, 2.0, times=[0.0, 1.0], method=method, labels=torch.arange(len(end)) % 3)
    assert view.positions.shape == (2, len(end), 2)
    assert set(view.quality) == {"distortion", "10-neighbour overlap"}
    assert method in view.method
    # The halved embedding is drawn inside the whole one, not turned away from it.
    assert np.corrcoef(view.positions[0].ravel(), view.positions[1].ravel())[0, 1] > 0.7
    flat = make_disk_view(end[:, :2], 4.0)
    np.testing.assert_allclose(flat.positions[0], 2 * end[:, :2], atol=1e-9)


@pytest.mark.parametrize(("write", "read"), [(write_graphml, networkx.read_graphml), (write_gexf, networkx.read_gexf)])
def test_graph_files_keep_coordinates_and_names(tmp_path, write, read):
    view = sample_view(depth=3)
    path = tmp_path / "new" / "graph.xml"
    write(view, path)
    graph = read(path)
    assert graph.number_of_edges() == view.edges.shape[1]
    for i in (0, 1, 20):
        facts = graph.nodes[str(i)]
        assert facts["x"] == pytest.approx(view.positions[-1][i, 0])
        assert facts["y"] == pytest.approx(view.positions[-1][i, 1])
        assert facts["class"] == CLASSES[view.labels[i]]
    assert graph.nodes["1"]["label"] == HOSTILE[0]


def test_gexf_has_positions_for_gephi(tmp_path):
    view = sample_view(depth=2)
    write_gexf(view, tmp_path / "graph.gexf")
    place = networkx.read_gexf(tmp_path / "graph.gexf").nodes["2"]["viz"]["position"]
    assert place["x"] == pytest.approx(1000 * view.positions[-1][2, 0])


def test_projector_files_have_one_line_per_node(tmp_path):
    view = sample_view(depth=3)
    vectors, metadata, config = write_projector(
        tmp_path, view.positions[-1], ids=view.ids, labels=view.labels, class_names=CLASSES
    )
    np.testing.assert_allclose(np.loadtxt(vectors, delimiter="\t"), view.positions[-1], rtol=1e-8)
    lines = metadata.read_text(encoding="utf-8").split("\n")[:-1]
    assert lines[0] == "id\tclass"
    assert len(lines) == 1 + len(view.ids)
    assert all(line.count("\t") == 1 for line in lines)
    assert 'tensor_path: "vectors.tsv"' in config.read_text(encoding="utf-8")
    _, plain, _ = write_projector(tmp_path, view.positions[-1])
    assert len(plain.read_text(encoding="utf-8").splitlines()) == len(view.ids)
