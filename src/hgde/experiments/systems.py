"""What is compared: models with their presets, the flat twin, and baselines that cost nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hgde.experiments.extras import extras_for
from hgde.experiments.space import space_for
from hgde.models.base import MODELS, Model
from hgde.registry import RegistryError
from hgde.sections import overlay
from hgde.tasks import TASKS
from hgde.tasks.baselines import BASELINES
from hgde.tasks.metrics import CLASSES, PAIRS


class UnknownSystem(ValueError):
    """A system that cannot be used; the message names those that can."""


@dataclass(frozen=True)
class System:
    """One line of a table.

    Args:
        name: what it is called.
        model: the model that is trained; ``None`` for a baseline that costs nothing, called by its name.
        changes: nested settings laid over the model's preset.
        with_extras: whether it is trained with the extras of its task as well (:mod:`hgde.experiments.extras`).
        uses_graph, uses_features: what it looks at, for the advice that follows from a comparison.
    """

    name: str
    model: str | None
    changes: Mapping[str, Any] = field(default_factory=dict)
    uses_graph: bool = True
    uses_features: bool = True
    with_extras: bool = False

    @property
    def is_trained(self) -> bool:
        return self.model is not None

    @property
    def learns_by_a_loss(self) -> bool:
        """Whether there is anything to set about its training: label spreading is a model, and has none."""
        return self.model is not None and any(one.path.startswith("training.") for one in space_for(self.model))

    def changes_for(self, task: str, *, many_labels: bool = False) -> Mapping[str, Any]:
        """What makes the system what it is, on a task."""
        if not self.with_extras:
            return self.changes
        try:
            return overlay(self.changes, extras_for(task, many_labels=many_labels))
        except KeyError:
            raise UnknownSystem(f"{self.name} is not there for {task}: there are extras for nodes and links") from None


FLAT = {"model": {"name": "hgde", "space": {"name": "euclidean"}}}
VARIANTS = {
    "hgde-flat": System("hgde-flat", "hgde", FLAT),
    "hgde-e": System("hgde-e", "hgde", {"model": {"name": "hgde", "solver": {"name": "hrk4"}}}),
    "hgde-plain": System(
        "hgde-plain", "hgde", {"preset": "none", "model": {"name": "hgde", "solver": {"name": "hrk4"}}}
    ),
    "hgde-i": System("hgde-i", "hgde", {"model": {"name": "hgde", "solver": {"name": "ham"}}}),
    "hgcn-att": System("hgcn-att", "hgcn", {"model": {"name": "hgcn", "attention": True}}),
    "hgcn-local": System("hgcn-local", "hgcn", {"model": {"name": "hgcn", "attention": True, "local": True}}),
}
"""Models with a few settings fixed, under a name of their own; ``hgde-plain`` is without presets, so without extras."""
PLUS = "+"
"""At the end of a name: with extras."""

_FEATURES_ALONE = ("mlp", "hnn", "logistic-regression", "feature-forest", "feature-likeness", "majority")
_GRAPH_ALONE = (
    "label-propagation", "label-spreading", "majority", "common-neighbours", "adamic-adar", "katz",
    "preferential-attachment",
)  # fmt: skip

_MODELS = ("hgde", "hgde-flat", "gcn", "gcn+", "appnp", "gat", "mlp")
_WITHOUT_EXTRAS = tuple(name for name in _MODELS if not name.endswith(PLUS))
USUAL = {
    "nodes": (*_MODELS, "label-propagation", "logistic-regression", "majority"),
    "links": (*_MODELS, "common-neighbours", "adamic-adar", "katz", "feature-forest"),
    "regression": (*_WITHOUT_EXTRAS, "label-propagation", "logistic-regression", "majority"),
    "multilabel": (*_WITHOUT_EXTRAS, "logistic-regression", "majority"),
}
"""What ``hgde compare`` compares when nobody says what."""


def find_system(name: str) -> System:
    """A variant above, a baseline that costs nothing, or any model; a name with a plus is that system with extras."""
    if name in VARIANTS:
        return VARIANTS[name]
    if name.endswith(PLUS):
        plain = find_system(name.removesuffix(PLUS))
        if not plain.learns_by_a_loss:
            raise UnknownSystem(f"{plain.name} is not trained, so there is no {name}")
        return replace(plain, name=name, with_extras=True)
    looks = {"uses_graph": name not in _FEATURES_ALONE, "uses_features": name not in _GRAPH_ALONE}
    if ":" not in name and name in BASELINES:
        return System(name, None, {}, **looks)
    try:
        MODELS.get(name)
    except RegistryError:
        known = ", ".join(dict.fromkeys([*VARIANTS, *MODELS, *BASELINES]))
        raise UnknownSystem(f"there is no system called {name!r}; there are {known}") from None
    return System(name, name, {"model": {"name": name}}, **looks)


def usual_systems(task: str) -> list[System]:
    """Those of :data:`USUAL`; for a task of a plug-in, the models."""
    kind = TASKS.get(task).kind
    fallback = "links" if kind == PAIRS else "nodes"
    names = USUAL.get(task, USUAL[fallback] if kind in (CLASSES, PAIRS) else USUAL["multilabel"])
    return [find_system(name) for name in names]


def chooses_itself(model: str) -> bool:
    """Whether a model brings several presets that are chosen among on the validation part (``preset = auto``)."""
    return MODELS.get(model).candidates.__func__ is not Model.candidates.__func__  # type: ignore[attr-defined]  # class methods have it


def preset_name(model: str, data: str, task: str) -> str:
    """The preset that fits best: for data and task, for the data, for the task, the default; or that there is none.

    A model that chooses among presets of its own is left to do so (``auto``).
    """
    if chooses_itself(model):
        return "auto"
    plain = data.lower().replace("_", "-")
    family = plain.partition("-")[0]  # disease-sim, cifar10-effnet
    own = [plain, family] if task == "nodes" else []
    wanted = [f"{plain}-{task}", f"{family}-{task}", *own, task, "default"]
    presets = MODELS.get(model).presets
    return next((name for name in wanted if name in presets), "none")


def preset_of(model: str, data: str, task: str) -> dict[str, Any]:
    """The settings of that preset, spelt out, with ``preset = none``, so that records say what was trained."""
    name = preset_name(model, data, task)
    values = MODELS.get(model).presets.get(name, {})
    kept = "auto" if name == "auto" else "none"
    return overlay(values, {"preset": kept, "model": {"name": model, **values.get("model", {})}})


def settings_of(
    system: System, given: Mapping[str, Any], data: str, task: str, *, many_labels: bool = False
) -> dict[str, Any]:
    """Nested settings of a system on data: its preset, its own changes, then what was given for all systems."""
    if system.model is None:
        return dict(given)
    changes = system.changes_for(task, many_labels=many_labels)
    return overlay(overlay(preset_of(system.model, data, task), changes), given)
