"""How a model is trained."""

from __future__ import annotations

from dataclasses import dataclass

from hgde.sections import Section, setting


@dataclass(frozen=True)
class TrainingSettings(Section):
    epochs: int = setting(500, "Most epochs.", above=0)
    patience: int = setting(100, "Epochs without a better one before stopping.", above=0)
    keep: str = setting(
        "score",
        "Which epoch is kept: that of the best validation score, or of the smallest validation loss.",
        choices=("score", "loss"),
    )
    smoothing: float = setting(
        0.5,
        "Share that the running mean of the validation score keeps each epoch; the epoch with the best mean is kept, "
        "so that a lucky one is not (0: off).",
        at_least=0,
        below=1,
        inert=lambda s: "the epoch is kept by its loss" if s.keep == "loss" else None,
    )
    calibrate: bool = setting(
        True,
        "Fit a temperature to the validation part, so that probabilities mean what they say; classes do not change.",
    )
    validate_every: int = setting(1, "Epochs between two looks at the validation score.", above=0)
    lr: float = setting(0.01, "Learning rate.", above=0)
    lr_curvature: float | None = setting(None, "Learning rate of the curvatures (default: the same).", above=0)
    weight_decay: float = setting(5e-3, "Weight decay of the feature matrix.", at_least=0)
    weight_decay_rest: float = setting(0.0, "Weight decay of the other matrices (never of points).", at_least=0)
    warm_up: int = setting(10, "Epochs over which the learning rate rises to its value (0: at once).", at_least=0)
    clip: float | None = setting(1.0, "Largest length of the gradient; longer ones are shortened to it.", above=0)
    averaging: float = setting(
        0.0,
        "Share a running average of the weights keeps each epoch; scores are those of the average (0: off).",
        at_least=0,
        below=1,
    )
