"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass

from hgde.sections import Section, setting


@dataclass(frozen=True)
class TrainingSettings(Section):
    epochs: int = setting(500, "Maximum number of epochs.", above=0)
    patience: int = setting(100, "Epochs without improvement before stopping.", above=0)
    keep: str = setting(
        "score",
        "Which epoch to keep: the one with the best validation score, or with the smallest validation loss.",
        choices=("score", "loss"),
    )
    smoothing: float = setting(
        0.5,
        "Decay of the running mean of the validation score; the epoch with the best mean is kept, so that a single "
        "lucky one is not (0: off).",
        at_least=0,
        below=1,
        inert=lambda s: "the epoch is kept by its loss" if s.keep == "loss" else None,
    )
    calibrate: bool = setting(
        True,
        "Calibrate probabilities by a temperature fitted on the validation part; predicted classes do not change.",
    )
    validate_every: int = setting(1, "Epochs between validations.", above=0)
    lr: float = setting(0.01, "Learning rate.", above=0)
    lr_curvature: float | None = setting(None, "Learning rate of the curvatures (default: the same).", above=0)
    weight_decay: float = setting(5e-3, "Weight decay of the feature matrix.", at_least=0)
    weight_decay_rest: float = setting(0.0, "Weight decay of the other matrices (never of points).", at_least=0)
    warm_up: int = setting(10, "Epochs over which the learning rate rises to its full value (0: none).", at_least=0)
    clip: float | None = setting(1.0, "Largest norm of the gradient; longer ones are clipped.", above=0)
    averaging: float = setting(
        0.0,
        "Decay of a running average of the weights, which is then scored and kept (0: off).",
        at_least=0,
        below=1,
    )
