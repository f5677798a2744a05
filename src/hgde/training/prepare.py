"""From settings to a task: load the data, split it, make the input features the settings ask for."""

from __future__ import annotations

from dataclasses import replace

import torch

from hgde.data import Dataset, load, read_graph
from hgde.data.recipes import count_columns, hgcn_features
from hgde.data.splits import LinkSplit, NodeSplit, link_split, node_split
from hgde.graph import Graph, SparseFeatures
from hgde.settings import Settings, SettingsError
from hgde.training.inputs import InputScaling
from hgde.training.tasks import LinkTask, NodeTask, Task


def load_dataset(settings: Settings) -> Dataset:
    """The data the settings name, restricted to the largest component if they ask; features as stored."""
    if settings.edges is not None:
        dataset = read_graph(edges=settings.edges, nodes=settings.nodes)
    else:
        dataset = load(settings.data, root=settings.data_root, k=settings.neighbours)
    return dataset.largest_component() if settings.largest_component else dataset


def make_task(dataset: Dataset, settings: Settings) -> Task:
    """Split by the protocol of the settings; refuses, with words, data that cannot be trained on."""
    task: Task
    if settings.task == "links":
        links = link_split(dataset.graph, seed=settings.split, protocol=settings.protocol)
        task = link_task(with_inputs(dataset, settings, links.graph), links, settings)
    else:
        inputs = with_inputs(dataset, settings, dataset.graph)
        nodes = choose_node_split(dataset, settings)
        task = node_task(inputs, nodes, settings, allow_overlap=settings.protocol == "published")
    if settings.self_loops:
        task.graph = task.graph.with_self_loops()
    return task


def node_task(dataset: Dataset, split: NodeSplit, settings: Settings, *, allow_overlap: bool) -> NodeTask:
    return NodeTask(
        dataset,
        split,
        settings.metric,
        allow_overlap=allow_overlap,
        consistency=settings.consistency,
        temperature=settings.consistency_temperature,
    )


def link_task(dataset: Dataset, split: LinkSplit, settings: Settings) -> LinkTask:
    return LinkTask(dataset, split, settings.metric, hidden_edges=settings.hidden_edges)


def choose_node_split(dataset: Dataset, settings: Settings) -> NodeSplit:
    if settings.labels_per_class is not None:
        return node_split(dataset, "few", seed=settings.split, per_class=settings.labels_per_class)
    return node_split(dataset, settings.protocol, index=settings.split, seed=settings.split)


def with_inputs(dataset: Dataset, settings: Settings, graph: Graph, scaling: InputScaling | None = None) -> Dataset:
    """The data set with the features a model is given; degrees, where a recipe has them, are those of ``graph``.

    ``scaling`` is that of the nodes a model was trained on; by default it is worked out from this data set.
    """
    dataset = _stored_inputs(dataset, settings, graph)
    scaling = scaling or _scaling_of(dataset, settings)
    return replace(dataset, features=scaling(dataset.features))


def input_scaling(dataset: Dataset, settings: Settings, task: Task) -> InputScaling:
    """The scaling that the task's features were made with."""
    graph = task.split.graph if isinstance(task, LinkTask) else dataset.graph
    return _scaling_of(_stored_inputs(dataset, settings, graph), settings)


def _stored_inputs(dataset: Dataset, settings: Settings, graph: Graph) -> Dataset:
    """The columns a model is given, before they are scaled."""
    dropped = _dropped(dataset, settings)
    if dataset.name == "airport":
        recipe = settings.protocol if settings.normalise == "auto" else "unscaled"
        return hgcn_features(dataset, settings.task, graph=graph, recipe=recipe, drop_columns=dropped)
    return _without_columns(dataset, dropped)


def _scaling_of(dataset: Dataset, settings: Settings) -> InputScaling:
    if dataset.name == "airport" and settings.normalise == "auto":
        return InputScaling("none")  # its recipe scales the rows itself
    return InputScaling.of(dataset.features, settings.normalise)


def _dropped(dataset: Dataset, settings: Settings) -> tuple[int, ...]:
    dropped = _columns(settings.drop_columns)
    count = count_columns(dataset)
    for column in dropped:
        if not 0 <= column < count:
            raise SettingsError(f"drop_columns names column {column}; {dataset.name} has the columns 0 to {count - 1}")
    if dataset.name == "disease_lp" and settings.protocol == "clean" and settings.task == "links":
        dropped = (*dropped, 10)  # a coordinate of the layout, which gives the links away
    return dropped


def _columns(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(",") if number.strip())
    except ValueError:
        raise SettingsError(f"drop_columns must be column numbers such as 3 or 0,10, got {text!r}") from None


def _without_columns(dataset: Dataset, dropped: tuple[int, ...]) -> Dataset:
    if not dropped:
        return dataset
    kept = torch.tensor([column for column in range(dataset.num_features) if column not in dropped])
    if isinstance(dataset.features, SparseFeatures):
        matrix = dataset.features.to_scipy()[:, kept.numpy()]
        return replace(dataset, features=SparseFeatures.from_scipy(matrix, dataset.features.dtype))
    return replace(dataset, features=dataset.features[:, kept])
