"""Every setting of a run, in one typed place.

The command line, settings files, saved runs and the estimators all read this class. A value comes from the class's
default, then from a settings file (TOML), then from the command line; the last one given wins.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


class SettingsError(ValueError):
    """A setting that cannot be used; the message names it and what would be right."""


def setting(default: Any, help: str, group: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": help, "group": group, "choices": choices})


SOLVERS = (
    *("heuler", "hrk4", "ham"),
    *("euler", "midpoint", "heun", "rk4", "bosh3", "dopri5", "explicit_adams", "implicit_adams"),
)
"""Names of :data:`hgde.solvers.SOLVERS`, listed here so that settings are checked without loading torch."""

DATA, MODEL, TRAINING, RUN = "Data", "Model", "Training", "Run"


@dataclass(frozen=True)
class Settings:
    """What a run depends on. Two runs with equal settings, data and versions give the same bits."""

    # --- data
    data: str = setting("disease-sim", "Name of a registered data set (`hgde data list`).", DATA)
    edges: str | None = setting(None, "Your own graph: a table of edges (source,target).", DATA)
    nodes: str | None = setting(None, "Your own graph: a table of nodes (id,label, then features).", DATA)
    data_root: str | None = setting(None, "Folder with data files (default: $HGDE_DATA, then the cache).", DATA)
    task: str = setting("nodes", "What to learn: classes of nodes, or links between them.", DATA, ("nodes", "links"))
    protocol: str = setting(
        "clean", "Which split: the literature's with its faults, or one without leaks.", DATA, ("clean", "published")
    )
    split: int = setting(0, "Number of the split where a set has several fixed ones, else its seed.", DATA)
    labels_per_class: int | None = setting(None, "Few-label split with so many training labels a class.", DATA)
    largest_component: bool = setting(False, "Keep only the largest connected component.", DATA)
    normalise: str = setting(
        "auto",
        "Features as they are, rows divided by their sum or their length, or columns to mean 0 and deviation 1 (auto: "
        "rows if sparse, else columns).",
        DATA,
        ("auto", "none", "rows", "unit", "columns"),
    )
    drop_columns: str = setting("", "Numbers of feature columns to leave out, such as 3 or 0,10.", DATA)
    self_loops: bool = setting(False, "Let every node also receive from itself.", DATA)
    neighbours: int = setting(5, "Neighbours of the graph built where a set has none.", DATA)

    # --- model
    width: int = setting(16, "Dimension of the ball.", MODEL)
    time: float = setting(8.0, "How long to diffuse (T).", MODEL)
    step: float = setting(1.0, "Step of fixed-step solvers (tau).", MODEL)
    method: str = setting("heuler", "Solver (`hgde orders` lists them).", MODEL, SOLVERS)
    rtol: float = setting(1e-3, "Relative tolerance of adaptive solvers.", MODEL)
    atol: float = setting(1e-4, "Absolute tolerance of adaptive solvers.", MODEL)
    diffusivity: str = setting(
        "isotropic",
        "Weight of a neighbour.",
        MODEL,
        ("isotropic", "attention", "ricci", "global", "local-global", "linear-global"),
    )
    local: str = setting("attention", "Local part of `local-global`.", MODEL, ("attention", "ricci", "isotropic"))
    beta: float = setting(0.5, "Share of the global part.", MODEL)
    learn_beta: bool = setting(False, "Train that share.", MODEL)
    heads: int = setting(1, "Attention heads.", MODEL)
    ricci_alpha: float = setting(0.5, "Mass that stays at the node in Ollivier-Ricci curvature.", MODEL)
    residual: bool = setting(True, "Mix each step with the state and the start by a gyromidpoint.", MODEL)
    eta: tuple[float, float, float] = setting((1.0, 0.6, 0.1), "Weights of step, state and start.", MODEL)
    learn_eta: bool = setting(False, "Train those weights.", MODEL)
    encoder_layers: int = setting(1, "Linear layers of the encoder.", MODEL)
    activation: str = setting(
        "identity", "Activation inside the flow.", MODEL, ("identity", "relu", "leaky_relu", "tanh")
    )
    encoder_activation: str = setting(
        "identity", "Activation between encoder and flow.", MODEL, ("identity", "relu", "leaky_relu", "tanh")
    )
    curvature: float = setting(1.0, "c > 0 at the start; the ball has curvature -c.", MODEL)
    learn_curvature: bool = setting(True, "Train the curvatures of encoder and flow.", MODEL)
    dropout: float = setting(0.5, "Dropout on the input features.", MODEL)
    state_dropout: float = setting(0.0, "Dropout on the encoded nodes before they diffuse.", MODEL)
    hidden_dropout: float = setting(0.0, "Dropout on the embedding before the decoder.", MODEL)
    gradient: Literal["backprop", "recompute"] = setting(
        "backprop", "Store every step, or recompute each (exact, one state a step).", MODEL, ("backprop", "recompute")
    )
    fermi_r: float = setting(2.0, "Radius r of the Fermi-Dirac link decoder.", MODEL)
    fermi_t: float = setting(1.0, "Temperature t of the Fermi-Dirac link decoder.", MODEL)

    # --- training
    epochs: int = setting(500, "Most epochs.", TRAINING)
    patience: int = setting(100, "Epochs without a better one before stopping.", TRAINING)
    keep: str = setting(
        "score",
        "Which epoch is kept: that of the best validation score, or of the smallest validation loss.",
        TRAINING,
        ("score", "loss"),
    )
    validate_every: int = setting(1, "Epochs between two looks at the validation score.", TRAINING)
    lr: float = setting(0.01, "Learning rate.", TRAINING)
    lr_curvature: float | None = setting(None, "Learning rate of the curvatures (default: the same).", TRAINING)
    weight_decay: float = setting(5e-3, "Weight decay of the feature matrix.", TRAINING)
    weight_decay_rest: float = setting(0.0, "Weight decay of the other matrices (never of points).", TRAINING)
    clip: float | None = setting(None, "Largest length of the gradient; longer ones are shortened to it.", TRAINING)
    averaging: float = setting(
        0.0,
        "Share a running average of the weights keeps each epoch; scores are those of the average (0: off).",
        TRAINING,
    )
    consistency: float = setting(
        0.0,
        "Nodes: weight of the agreement of two passes with dropout of their own, over labelled and unlabelled nodes "
        "(0: off, one pass).",
        TRAINING,
    )
    consistency_temperature: float = setting(
        0.5, "Nodes: below 1, the passes are drawn to a sharper version of their mean.", TRAINING
    )
    hidden_edges: float = setting(
        0.0,
        "Links: share of the training edges that is hidden from the flow each epoch and alone learned from (0: learn "
        "from all, diffuse along all).",
        TRAINING,
    )
    metric: str = setting(
        "auto", "Score to select by and report.", TRAINING, ("auto", "accuracy", "f1", "roc_auc", "average_precision")
    )

    # --- run
    seed: int = setting(0, "Seed of the first run.", RUN)
    seeds: int = setting(1, "How many seeds to run, one after the other.", RUN)
    dtype: str = setting("float32", "Number type.", RUN, ("float32", "float64"))
    device: str = setting("auto", "Device: auto, cpu, cuda, cuda:1, ...", RUN)
    threads: int | None = setting(None, "CPU threads (default: torch's).", RUN)
    checkpoint_every: int = setting(50, "Epochs between checkpoints (at least one every 30 s).", RUN)

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            object.__setattr__(self, spec.name, _checked(spec, getattr(self, spec.name)))
        self._check_ranges()

    def _check_ranges(self) -> None:
        positive = ("width", "time", "step", "heads", "curvature", "epochs", "patience", "lr", "seeds", "fermi_t")
        for name in (
            *positive,
            "encoder_layers",
            "validate_every",
            "checkpoint_every",
            "neighbours",
            "rtol",
            "atol",
            "consistency_temperature",
        ):
            if not getattr(self, name) > 0:
                raise SettingsError(f"{name} must be greater than 0, got {getattr(self, name)}")
        if self.clip is not None and not self.clip > 0:
            raise SettingsError(f"clip must be greater than 0, got {self.clip}")
        for name in ("weight_decay", "weight_decay_rest", "consistency"):
            if getattr(self, name) < 0:
                raise SettingsError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("dropout", "state_dropout", "hidden_dropout", "averaging", "hidden_edges"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingsError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        for name in ("beta", "ricci_alpha"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name} must be between 0 and 1, got {getattr(self, name)}")
        if self.nodes is not None and self.edges is None:
            raise SettingsError("nodes was given without edges; give the table of edges too")

    def to_dict(self) -> dict[str, Any]:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def replace(self, **changes: Any) -> Settings:
        reject_unknown(changes, "setting")
        return dataclasses.replace(self, **changes)


FIELDS = {spec.name: spec for spec in dataclasses.fields(Settings)}
_TYPES = typing.get_type_hints(Settings)


def reject_unknown(given: dict[str, Any], where: str) -> None:
    """Raise for a key that is no setting, naming the nearest one."""
    for key in given:
        if key not in FIELDS:
            near = difflib.get_close_matches(key, FIELDS, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else f"; the settings are {', '.join(FIELDS)}"
            raise SettingsError(f"unknown {where} {key!r}{hint}")


def from_dict(values: dict[str, Any]) -> Settings:
    reject_unknown(values, "setting")
    return Settings(**values)


def read_settings(path: str | Path) -> dict[str, Any]:
    """The settings a TOML or JSON file gives, checked, as a dictionary to be overlaid."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise SettingsError(f"settings file {path} does not exist") from None
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {path} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise SettingsError(f"settings file {path} must hold names and values")
    reject_unknown(values, f"setting in {path}:")
    try:
        from_dict(values)
    except SettingsError as error:
        raise SettingsError(f"settings file {path}: {error}") from None
    return values


def _checked(spec: dataclasses.Field[Any], value: Any) -> Any:
    kind = _TYPES[spec.name]
    options = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if value is None and type(None) in options:
        return None
    wanted = next(option for option in options if option is not type(None))
    wanted = str if typing.get_origin(wanted) is Literal else wanted
    converted = _convert(wanted, value)
    if converted is None:
        name = "three numbers" if typing.get_origin(wanted) is tuple else wanted.__name__
        raise SettingsError(f"{spec.name} must be {name}, got {value!r}")
    choices = spec.metadata["choices"]
    if choices and converted not in choices:
        near = difflib.get_close_matches(str(converted), choices, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise SettingsError(f"{spec.name} must be one of {', '.join(choices)}, got {converted!r}{hint}")
    return converted


def _convert(wanted: Any, value: Any) -> Any:
    if typing.get_origin(wanted) is tuple:
        if isinstance(value, str):
            value = value.replace("/", ",").split(",")
        try:
            numbers = tuple(float(item) for item in value)
        except (TypeError, ValueError):
            return None
        return numbers if len(numbers) == len(typing.get_args(wanted)) else None
    if isinstance(value, bool) and wanted is not bool:
        return None
    if wanted is int and hasattr(value, "__index__"):
        return int(value)
    if wanted is float and hasattr(value, "__float__"):
        return float(value)
    return value if isinstance(value, wanted) else None
