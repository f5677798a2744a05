"""What the estimators share: parameters, fitting through the trainer, and a fitted state that can be pickled."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from hgde.estimators.inputs import as_features, as_graph, fingerprint, unpack
from hgde.graph import Features, Graph
from hgde.models import HGDE
from hgde.settings import FIELDS, Settings
from hgde.training.inputs import InputScaling
from hgde.training.run import choose_device
from hgde.training.tasks import Task
from hgde.training.trainer import Trainer, seed_everything

Array = np.ndarray[Any, Any]
_DEFAULT = Settings()


class HGDEEstimator(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of the estimators. Parameters are the settings of the same name (``hgde train --help`` explains each).

    Two are the estimators' own: ``validation_fraction``, the share of labels (or edges) held back to decide when to
    stop, and ``random_state``, from which start, split and dropout follow.
    """

    def __init__(
        self,
        *,
        width: int = _DEFAULT.width,
        time: float = _DEFAULT.time,
        step: float = _DEFAULT.step,
        method: str = _DEFAULT.method,
        rtol: float = _DEFAULT.rtol,
        atol: float = _DEFAULT.atol,
        diffusivity: str = _DEFAULT.diffusivity,
        local: str = _DEFAULT.local,
        beta: float = _DEFAULT.beta,
        learn_beta: bool = _DEFAULT.learn_beta,
        heads: int = _DEFAULT.heads,
        ricci_alpha: float = _DEFAULT.ricci_alpha,
        residual: bool = _DEFAULT.residual,
        eta: tuple[float, float, float] = _DEFAULT.eta,
        learn_eta: bool = _DEFAULT.learn_eta,
        activation: str = _DEFAULT.activation,
        encoder_activation: str = _DEFAULT.encoder_activation,
        encoder_layers: int = _DEFAULT.encoder_layers,
        curvature: float = _DEFAULT.curvature,
        learn_curvature: bool = _DEFAULT.learn_curvature,
        dropout: float = _DEFAULT.dropout,
        state_dropout: float = _DEFAULT.state_dropout,
        hidden_dropout: float = _DEFAULT.hidden_dropout,
        gradient: str = _DEFAULT.gradient,
        fermi_r: float = _DEFAULT.fermi_r,
        fermi_t: float = _DEFAULT.fermi_t,
        normalise: str = _DEFAULT.normalise,
        self_loops: bool = _DEFAULT.self_loops,
        neighbours: int = _DEFAULT.neighbours,
        epochs: int = _DEFAULT.epochs,
        patience: int = _DEFAULT.patience,
        keep: str = _DEFAULT.keep,
        validate_every: int = _DEFAULT.validate_every,
        lr: float = _DEFAULT.lr,
        lr_curvature: float | None = _DEFAULT.lr_curvature,
        weight_decay: float = _DEFAULT.weight_decay,
        weight_decay_rest: float = _DEFAULT.weight_decay_rest,
        clip: float | None = _DEFAULT.clip,
        averaging: float = _DEFAULT.averaging,
        consistency: float = _DEFAULT.consistency,
        consistency_temperature: float = _DEFAULT.consistency_temperature,
        hidden_edges: float = _DEFAULT.hidden_edges,
        metric: str = _DEFAULT.metric,
        dtype: str = _DEFAULT.dtype,
        device: str = _DEFAULT.device,
        validation_fraction: float = 0.2,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.width = width
        self.time = time
        self.step = step
        self.method = method
        self.rtol = rtol
        self.atol = atol
        self.diffusivity = diffusivity
        self.local = local
        self.beta = beta
        self.learn_beta = learn_beta
        self.heads = heads
        self.ricci_alpha = ricci_alpha
        self.residual = residual
        self.eta = eta
        self.learn_eta = learn_eta
        self.activation = activation
        self.encoder_activation = encoder_activation
        self.encoder_layers = encoder_layers
        self.curvature = curvature
        self.learn_curvature = learn_curvature
        self.dropout = dropout
        self.state_dropout = state_dropout
        self.hidden_dropout = hidden_dropout
        self.gradient = gradient
        self.fermi_r = fermi_r
        self.fermi_t = fermi_t
        self.normalise = normalise
        self.self_loops = self_loops
        self.neighbours = neighbours
        self.epochs = epochs
        self.patience = patience
        self.keep = keep
        self.validate_every = validate_every
        self.lr = lr
        self.lr_curvature = lr_curvature
        self.weight_decay = weight_decay
        self.weight_decay_rest = weight_decay_rest
        self.clip = clip
        self.averaging = averaging
        self.consistency = consistency
        self.consistency_temperature = consistency_temperature
        self.hidden_edges = hidden_edges
        self.metric = metric
        self.dtype = dtype
        self.device = device
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _settings(self, task: str) -> Settings:
        """The parameters, checked, as settings of a run."""
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {self.validation_fraction}")
        state = self.random_state
        seed = int(state) if isinstance(state, int | np.integer) else int(check_random_state(state).randint(2**31 - 1))
        given = {name: getattr(self, name) for name in FIELDS if name in self._get_param_names()}
        return Settings(**given, task=task, seed=seed)

    def _rows(self, X: Any, dtype: str, *, reset: bool) -> Features:
        rows = validate_data(self, X, accept_sparse="csr", dtype=["float64", "float32"], reset=reset)
        return as_features(rows, getattr(torch, dtype))

    def _start(self, X: Any, graph: Any, settings: Settings) -> tuple[Features, Graph]:
        """Scaled features and graph of the training nodes; remembers what predictions need of them."""
        rows = self._rows(X, settings.dtype, reset=True)
        self.graph_ = as_graph(graph, rows, settings.neighbours)
        self._given_graph = graph is not None
        self._trained_on = fingerprint(rows)
        self._scaling = InputScaling.of(rows, settings.normalise)
        return self._scaling(rows), self._passing(self.graph_, settings)

    @staticmethod
    def _passing(graph: Graph, settings: Settings) -> Graph:
        return graph.with_self_loops() if settings.self_loops else graph

    def _train(self, task: Task, settings: Settings) -> None:
        """Train by the package's trainer and keep weights and figures; torch's own random state is left as it was."""
        device = choose_device(settings)
        task.to(device, getattr(torch, settings.dtype))
        with torch.random.fork_rng():
            seed_everything(settings.seed)
            model = HGDE.from_settings(settings, int(task.features.shape[1]), task.num_classes).to(device)
            outcome = Trainer(model, task, settings, settings.seed).fit()
        self._fitted_settings = settings
        self._num_classes = task.num_classes
        self._weights = {name: value.detach().cpu().numpy() for name, value in model.state_dict().items()}
        self.curvature_ = -outcome.curvatures["diffusion"]
        self.n_iter_ = outcome.epochs
        self.best_epoch_ = outcome.best_epoch
        self.validation_score_ = outcome.validation[task.metric]
        self.history_ = outcome.history

    def _model(self) -> tuple[HGDE, torch.device]:
        """The trained model, built anew from its weights: predicting changes nothing in the estimator."""
        settings = self._fitted_settings
        device = choose_device(settings)
        with torch.random.fork_rng():
            model = HGDE.from_settings(settings, self.n_features_in_, self._num_classes)
        model.load_state_dict({name: torch.as_tensor(value) for name, value in self._weights.items()})
        return model.to(device).eval(), device

    def _inputs(self, X: Any, graph: Any) -> tuple[Features, Graph]:
        """Scaled features and graph of nodes to predict; their graph is given, or the known one, or built."""
        settings = self._fitted_settings
        rows = self._rows(X, settings.dtype, reset=False)
        if graph is None and fingerprint(rows) == self._trained_on:
            found = self.graph_
        elif graph is None and self._given_graph:
            raise ValueError(
                f"{type(self).__name__} was fitted with a graph, and these rows are not the ones it was fitted on: "
                "give their graph too (graph=... or edge_index=...)"
            )
        else:
            found = as_graph(graph, rows, settings.neighbours)
        return self._scaling(rows), self._passing(found, settings)

    @torch.no_grad()
    def _embed(self, X: Any, graph: Any) -> torch.Tensor:
        check_is_fitted(self)
        features, found = self._inputs(X, graph)
        model, device = self._model()
        points: torch.Tensor = model.embed(features.to(device), found.to(device))
        return points

    def transform(self, X: Any, *, graph: Any = None, edge_index: Any = None) -> Array:
        """Points of the Poincaré ball of curvature ``curvature_``, ``[N, width]``."""
        check_is_fitted(self)
        given = unpack(X, None, graph, edge_index)
        return self._embed(given.rows, given.graph).cpu().numpy()

    def fit_transform(self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None) -> Array:
        """``fit``, then ``transform`` of the same nodes."""
        points: Array = self.fit(X, y, graph=graph, edge_index=edge_index).transform(
            X, graph=graph, edge_index=edge_index
        )
        return points

    def fit(self, X: Any, y: Any = None, *, graph: Any = None, edge_index: Any = None) -> Any:
        raise NotImplementedError

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """``z0, z1, ...``: the coordinates."""
        check_is_fitted(self)
        return np.array([f"z{k}" for k in range(self._n_features_out)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return self._fitted_settings.width

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_weights")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
