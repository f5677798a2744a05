"""Every setting of the tree acts: changing it changes the run, or it is refused with a reason.

The list of settings is read off the declarations, so that a new one is tested by existing. A value to change to is made
from its type, choices and default; ``OTHER`` and ``WITH`` hold what cannot be guessed: another value, and the settings
next to which one acts at all. Where the run's numbers are not what a setting is about, ``OBSERVED`` says what is.
"""

import json
import types
import typing
from functools import cache
from pathlib import Path

import pytest
import torch

from hgde.data import DataError
from hgde.models.base import MODELS
from hgde.models.zoo.label_propagation import LabelModel
from hgde.pipeline import Reporter, Settings, fit, make_settings
from hgde.pipeline.prepare import DeviceError
from hgde.registry import RegistryError
from hgde.sections import SettingsError, leaves, nested, overlay
from hgde.solvers import SolverError
from hgde.tasks import MetricError

QUICK = {
    "preset": "none",
    "data": {"name": "disease-sim", "options": ["num_nodes=40"]},
    "model": {"name": "hgde", "width": 4, "time": 2.0},
    "training": {"epochs": 1, "lr": 0.05},
    "run": {"threads": 1},
}
REFUSED = (SettingsError, DataError, RegistryError, MetricError, DeviceError)

HGDE = list(leaves(Settings, lambda path, registry: ["hgde"] if path == "model" else registry.names()))
ZOO = [
    leaf
    for name in MODELS.names()
    if name != "hgde"
    for leaf in leaves(Settings, lambda path, registry, name=name: [name] if path == "model" else registry.names())
    if leaf.path.startswith("model.") and leaf.path != "model.name"
]


@pytest.fixture(scope="module", autouse=True)
def tables(tmp_path_factory):
    """A graph of the user's own: named columns of every kind, with gaps, and edges that carry weights."""
    folder = tmp_path_factory.mktemp("tables")
    draw = torch.Generator().manual_seed(0)
    number = torch.randn(40, 2, generator=draw)
    lines = ["id,name,label,alt,a,b,score,x,y,kind,level,split,other_split"]
    for k in range(40):
        label, x = k % 2, number[k, 0] + k % 2
        gap = "" if k % 7 == 0 else f"{number[k, 1]:.4f}"
        part, other = ("train", "val", "test", "train")[k % 4], ("val", "train", "train", "test")[k % 4]
        cells = [
            f"n{k}", f"m{k}", "ab"[label], "cd"[(k // 3) % 2], label, int(k % 5 == 0), f"{2 * x:.4f}", f"{x:.4f}", gap,
            ("red", "green", "blue")[k % 3], k % 4, part, other,
        ]  # fmt: skip
        lines.append(",".join(map(str, cells)))
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    pairs = [(k, (k + step) % 40) for k in range(40) for step in (1, 2, 7) if k < 30]
    header = "source,target,weight,heft,from,to\n"
    rows = [f"n{u},n{v},{1 + u % 3},{1 + v % 5},n{(u + 1) % 40},n{(v + 5) % 40}\n" for u, v in pairs]
    (folder / "edges.csv").write_text(header + "".join(rows))
    (folder / "names.csv").write_text(header + "".join(rows).replace("n", "m"))
    (folder / "odd.csv").write_text((header + "".join(rows)).replace(",", ";"))
    (folder / "more.csv").write_text(header + "".join(rows[:60]))
    TABLES.update(
        edges=str(folder / "edges.csv"), nodes=str(folder / "nodes.csv"), folder=folder, more=str(folder / "more.csv")
    )
    text = (folder / "nodes.csv").read_text().replace(",red,", ",green,")
    (folder / "few.csv").write_text(text)


TABLES: dict = {}
SPARE = ("name", "alt", "a", "b", "score", "other_split")
"""Columns that are there for some of the settings only."""


def own(**more):
    """Settings that read the tables."""
    kept = more.pop("keep", ())
    dropped = [column for column in SPARE if column not in kept]
    data = {"edges": TABLES["edges"], "nodes": TABLES["nodes"], **more}
    return {"data": data, "preprocessing": {"drop_columns": dropped}}


FROM_TABLES = {
    "data.edges", "data.nodes", "data.directed", "data.id_column", "data.label_column", "data.split_column",
    "data.source_column", "data.target_column", "data.weight_column", "data.delimiter", "data.largest_component",
    "preprocessing.drop_columns", "preprocessing.categorical", "preprocessing.missing", "data.neighbours",
}  # fmt: skip
"""Settings of a graph of one's own."""

WITH = {
    "task.consistency_temperature": {"task.consistency": 1.0},
    "task.negatives_per_edge": {"task.negatives": "hard", "task.negatives_per_edge": 5},
    "training.keep": {"training.epochs": 20, "training.warm_up": 0, "model.dropout": 0.0},
    "training.patience": {"training.epochs": 8, "training.lr": 3.0},
    "training.averaging": {"training.epochs": 2},
    "training.validate_every": {"training.epochs": 2},
    "model.solver.max_order": {"model.time": 8.0},
    "model.solver.s_max": {"model.time": 8.0, "model.solver.s_max": 2},
    "model.solver.s_min": {"model.time": 8.0, "model.solver.s_max": 3, "model.solver.s_min": 1},
    "model.space.scale": {"task.name": "links"},
    "model.encoder_width": {"model.encoder_layers": 2},
    "model.encoder_bends_last": {"model.encoder_activation": "relu"},
    "model.solver.max_iterations": {"model.time": 8.0, "model.solver.tolerance": 1e-3},
    "model.solver.tolerance": {"model.time": 8.0},
    "training.calibrate": {"training.epochs": 12, "data.options": ["num_nodes=400"]},
    "training.smoothing": {"training.epochs": 20, "training.warm_up": 0, "model.dropout": 0.0},
}
OTHER = {
    "training.smoothing": 0.0,
    "model.diffusivity.landmarks": 8,
    "model.solver.max_iterations": 1,
    "data.name": "digits",
    "data.options": ["num_nodes=41"],
    "preprocessing.normalise": "none",
    "preprocessing.steps": ["log"],
    "preprocessing.categorical": ["level"],
    "task.decoder": "dot",
    "task.class_weight": "balanced",
    "task.hidden_edges": 0.3,
    "model.space.factors": ["ball", "lorentz"],
    "model.eta": [1.0, 0.1, 0.1],
    "training.clip": 1e-3,
    "training.patience": 1,
    "training.averaging": 0.9,
    "model.solver.tolerance": 0.5,
    "run.dtype": "float64",
}


ALSO = {"task.negatives": {"task.negatives_per_edge": 4}}
"""What must change along with a setting."""


INERT = {
    "data.nodes": "nodes.csv",
    "data.root": "somewhere",
    "data.neighbours": 3,
    "data.directed": True,
    "data.id_column": "x",
    "data.label_column": "x",
    "data.split_column": "x",
    "data.source_column": "x",
    "data.target_column": "x",
    "data.weight_column": "x",
    "data.delimiter": ";",
    "task.consistency_temperature": 0.7,
    "task.negatives_per_edge": 7,
    "task.fermi_r": 1.0,
    "task.fermi_t": 2.0,
    "model.eta": [1.0, 0.5, 0.5],
    "model.learn_eta": True,
    "model.hidden_dropout": 0.5,
    "model.encoder_width": 5,
    "model.encoder_bends_last": False,
    "training.smoothing": 0.1,
    "training.lr_curvature": 0.1,
    "training.weight_decay_rest": 0.1,
    "training.calibrate": False,
}
"""Settings that depend on others, with a value; refused on the simulated data set, or beside what ``AGAINST`` names."""

AGAINST = {
    "task.fermi_r": {"task.decoder": "dot"},
    "task.fermi_t": {"task.decoder": "dot"},
    "model.eta": {"model.residual": False},
    "model.learn_eta": {"model.residual": False},
    "model.hidden_dropout": {"task.name": "links"},
    "training.smoothing": {"training.keep": "loss"},
    "training.lr_curvature": {"model.space.learn_curvature": False},
    "training.weight_decay_rest": {"task.name": "links"},
    "training.calibrate": {"task.name": "regression"},
}


def label(leaf):
    owners = ",".join(entry for path, entry in leaf.owners if path != "model" or entry != "hgde")
    return f"{leaf.path}[{owners}]" if owners else leaf.path


def context(leaf):
    """Settings in which the leaf exists and acts."""
    base = own() if leaf.path in FROM_TABLES else {}
    given = overlay(QUICK, base)
    if leaf.path in FROM_TABLES:
        given["data"] = base["data"]
    chosen = {f"{path}.name": entry for path, entry in leaf.owners}
    task = dict(leaf.owners).get("task")
    if task in ("regression", "multilabel"):
        kept = ("score",) if task == "regression" else ("a", "b")
        table = own(label_column=",".join(kept), keep=kept)
        table["preprocessing"]["drop_columns"].append("label")
        given = overlay(given, table) | {"data": table["data"]}
    if ("model", "hgde") not in leaf.owners and dict(leaf.owners).get("model"):
        given = {**given, "model": {}}
    given = overlay(given, nested(chosen))
    return overlay(given, nested(WITH.get(leaf.path, {})))


def current(given, leaf):
    value = given
    for part in leaf.path.split("."):
        value = value.get(part, None) if isinstance(value, dict) else None
    return leaf.default if value is None else value


def another(leaf, value):
    """A value that differs from the present one, by the setting's type."""
    if leaf.path == "task.metric":
        return "rmse" if ("task", "regression") in leaf.owners else "log_loss"
    if leaf.path in OTHER:
        return OTHER[leaf.path]
    if leaf.registry is not None:
        return next(name for name in leaf.registry.names() if name not in (value, "product"))
    if leaf.choices:
        return next(choice for choice in leaf.choices if choice != value)
    kinds = typing.get_args(leaf.kind) if isinstance(leaf.kind, types.UnionType) else (leaf.kind,)
    if bool in kinds:
        return not value
    if int in kinds:
        return 2 if value is None else value * 2 if value else 1
    if float in kinds:
        return 0.5 if value is None else value / 2 if value else 0.25
    raise AssertionError(f"say in OTHER what {leaf.path} is to be changed to")


@cache
def numbers(stored):
    """All that a run gives, as one comparable value."""
    try:
        result = fit(make_settings(json.loads(stored)))
    except SolverError as error:  # an iteration that is cut short is an outcome too
        return repr(error)
    weights = [model.learner.state_dict() for model in result.models]
    outcomes = [(o.test, o.validation, o.history, o.best_epoch, o.epochs) for o in result.summary.outcomes]
    points = [model.embed().tolist() for model in result.models]
    return repr(outcomes), [{name: value.tolist() for name, value in state.items()} for state in weights], points


def run(given):
    return numbers(json.dumps(given, sort_keys=True))


class Watcher(Reporter):
    """What happens while a run goes on."""

    def __init__(self, folder=None):
        self.folder, self.threads, self.checkpoints = folder, set(), []

    def epoch_done(self, epoch):
        self.threads.add(torch.get_num_threads())
        self.checkpoints.append((self.folder / "seed-0" / "checkpoint.safetensors").exists())


def threads_used(folder):
    def used(count):
        watcher = Watcher(folder)
        fit(make_settings(overlay(QUICK, {"run": {"threads": count}})), folder / str(count), reporter=watcher)
        return watcher.threads

    assert (used(1), used(2)) == ({1}, {2})


def checkpoints_written(folder):
    def written(every):
        watcher = Watcher(folder / str(every))
        given = overlay(QUICK, {"training": {"epochs": 3}, "run": {"checkpoint_every": every}})
        fit(make_settings(given), watcher.folder, reporter=watcher)
        return watcher.checkpoints

    assert written(50) == [False, False, False]
    assert written(2) == [False, True, True]


def device_used(folder):
    with pytest.raises(DeviceError, match="abacus"):
        fit(make_settings(overlay(QUICK, {"run": {"device": "abacus"}})))
    model = fit(make_settings(overlay(QUICK, {"run": {"device": "cpu"}}))).models[0]
    assert model.device.type == "cpu"


def root_looked_into(folder):
    named = {"data": {"name": "texas", "root": str(folder)}}
    with pytest.raises(DataError, match=str(folder)):
        fit(make_settings({**QUICK, **named}))
    with pytest.raises(SettingsError, match=r"data\.root has no effect"):
        make_settings({"data": {"name": "disease-sim", "root": str(folder)}})


def evaluations(folder):
    """Both give the same gradient; one evaluates the field again on the way back."""
    from hgde.diffusion import GraphFlow

    def count(gradient):
        calls = []
        given = overlay(QUICK, {"model": {"gradient": gradient, "solver": {"name": "rk4"}, "diffusivity": "attention"}})
        result = fit(make_settings(overlay(given, {"training": {"epochs": 1}})))
        flow = result.models[0].learner.model.block.flow
        assert isinstance(flow, GraphFlow)
        block, problem = result.models[0].learner.model.block, result.models[0].own.problem
        original = flow.bind

        def bind(*args):
            bound = original(*args)
            inner = type(bound).__call__
            calls.clear()

            class Counted(type(bound)):
                def __call__(self, *a, **k):
                    calls.append(1)
                    return inner(self, *a, **k)

            object.__setattr__(bound, "__class__", Counted)
            return bound

        flow.bind = bind
        start = result.models[0].learner.model.encoder(problem.inputs).detach().requires_grad_()
        block(start, problem.graph).sum().backward()
        return len(calls)

    assert count("recompute") > count("backprop") > 0


def neighbours_joined(folder):
    """Where a set has no graph, each node is joined with so many."""
    import numpy as np

    path = folder / "rows.npz"
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    np.savez(path, x=rows, y=np.arange(40) % 2)
    given = [overlay(QUICK, {}) | {"data": {"edges": str(path), "neighbours": k}} for k in (3, 6)]
    assert run(given[0]) != run(given[1])
    with pytest.raises(SettingsError, match=r"data\.neighbours has no effect"):
        make_settings({"data": {"neighbours": 3}})


def preset_laid_under(folder):
    """A preset gives what the user did not; where a model has several, the choice names the one it took."""
    plain = {"data": QUICK["data"], "run": QUICK["run"], "training": {"epochs": 3}}
    model = {"model": {"name": "gcn"}}
    names = list(MODELS.get("gcn").presets)
    made = fit(make_settings({**plain, **model, "preset": names[0]})).summary.settings.to_dict()
    without = fit(make_settings({**plain, **model, "preset": "none"})).summary.settings.to_dict()
    preset = MODELS.get("gcn").preset(names[0])
    assert made != without
    for part, values in preset.items():
        for key, value in values.items():
            assert made[part][key] == (3 if key == "epochs" else value), f"{part}.{key}"
    with pytest.raises(SettingsError, match="no-such-preset"):
        fit(make_settings({**plain, **model, "preset": "no-such-preset"}))


OBSERVED = {
    "preset": preset_laid_under,
    "data.root": root_looked_into,
    "data.neighbours": neighbours_joined,
    "model.gradient": evaluations,
    "run.threads": threads_used,
    "run.device": device_used,
    "run.checkpoint_every": checkpoints_written,
}

TABLE_VALUES = {
    "data.edges": lambda: TABLES["more"],
    "data.nodes": lambda: str(Path(TABLES["folder"]) / "few.csv"),
    "data.label_column": lambda: "alt",
    "data.split_column": lambda: "other_split",
    "data.source_column": lambda: "from",
    "data.target_column": lambda: "to",
    "data.weight_column": lambda: "heft",
    "preprocessing.drop_columns": lambda: ["name", "alt", "a", "b", "score", "other_split", "x"],
}


@pytest.mark.parametrize("leaf", HGDE, ids=label)
def test_changing_it_changes_the_run(leaf, tmp_path):
    if leaf.path in OBSERVED:
        OBSERVED[leaf.path](tmp_path)
        return
    given = context(leaf)
    if leaf.path == "data.id_column":
        given = overlay(given, {"data": {"edges": str(Path(TABLES["folder"]) / "names.csv"), "id_column": "name"}})
        given["preprocessing"]["drop_columns"] = ["id", *given["preprocessing"]["drop_columns"][1:]]
        assert run(given) == run(context(leaf)), "the same graph by its other names"
        with pytest.raises(DataError, match="m0"):
            run(overlay(context(leaf), {"data": {"edges": str(Path(TABLES["folder"]) / "names.csv")}}))
        return
    if leaf.path == "data.delimiter":
        table = {"data": {"edges": str(Path(TABLES["folder"]) / "odd.csv")}}
        given = overlay(QUICK, {"task": {"name": "links"}}) | table
        assert run(overlay(given, {"data": {"delimiter": ";"}}))
        with pytest.raises(DataError, match="source"):
            run(overlay(given, {"data": {"delimiter": ","}}))
        return
    value = TABLE_VALUES[leaf.path]() if leaf.path in TABLE_VALUES else another(leaf, current(given, leaf))
    changed = overlay(given, nested({leaf.path: value, **ALSO.get(leaf.path, {})}))
    if leaf.path in ("data.label_column", "data.split_column"):  # the column of before becomes a feature
        spare = {"data.label_column": "label", "data.split_column": "split"}[leaf.path]
        changed["preprocessing"] = {"drop_columns": [spare, *(column for column in SPARE if column != value)]}
    assert run(given) != run(changed), f"{leaf.path} = {value!r} is ignored"


@pytest.mark.parametrize("leaf", ZOO, ids=label)
def test_settings_of_other_models(leaf):
    name = dict(leaf.owners)["model"]
    key = f"{name}.{leaf.path.removeprefix('model.')}"
    given = {"preset": "none", "data": QUICK["data"], "model": {"name": name}, "run": QUICK["run"]}
    if not issubclass(MODELS.get(name), LabelModel):  # which are not trained
        given["training"] = QUICK["training"]
    given = overlay(given, nested(ZOO_WITH.get(key, {})))
    value = ZOO_OTHER[key] if key in ZOO_OTHER else another(leaf, current(given, leaf))
    assert run(given) != run(overlay(given, nested({leaf.path: value}))), f"{leaf.path} = {value!r} is ignored"


ADAPTIVE, REWIRED = {"model.method": "dopri5"}, {"model.rewire": True, "model.k": 8}
ZOO_WITH = {
    **{f"{name}.{key}": ADAPTIVE for name in ("blend", "gde", "grand") for key in ("rtol", "atol")},
    **{f"{name}.{key}": REWIRED for name in ("blend", "grand") for key in ("teleport", "k")},
    "glcn.k": {"model.pairs": "knn"},
    "graphcon.heads": {"model.coupling": "gat"},
    "manireg.k": {"model.graph": "knn"},
    "sgc.width": {"task.name": "links"},
    "label-propagation.rounds": {"task.labels_per_class": 2},
    "label-propagation.tolerance": {"task.labels_per_class": 2},
}
ZOO_OTHER = {
    "blend.landmarks": 10,
    **{f"{name}.rounds": 2 for name in ("label-propagation", "label-spreading")},
    **{f"{name}.tolerance": 0.1 for name in ("label-propagation", "label-spreading")},
}


@pytest.mark.parametrize("leaf", [leaf for leaf in HGDE if leaf.path in INERT], ids=label)
def test_where_it_cannot_act_it_is_refused(leaf):
    """In a configuration that leaves it nothing to do, the setting is an error that says why."""
    base = overlay(QUICK, nested({f"{path}.name": entry for path, entry in leaf.owners}))
    if leaf.path == "training.calibrate":
        base = overlay(QUICK, own(label_column="score", keep=("score",)))
        base["data"] = own(label_column="score")["data"]
    value = INERT[leaf.path]
    with pytest.raises(SettingsError, match=rf"{leaf.path.rpartition('.')[2]} has no effect: "):
        fit(make_settings(overlay(base, nested({**AGAINST.get(leaf.path, {}), leaf.path: value}))))
