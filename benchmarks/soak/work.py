"""What threads and processes do: fit an estimator, use it, and say what it said."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any


def fit_one(number: int) -> str:
    """Fit and use the estimator of that number; a digest of everything it says."""
    import numpy as np

    from hgde.data.sets.disease_sim import simulate_disease
    from hgde.estimators import HGDEClassifier, HGDERegressor

    sick = simulate_disease(seed=number, num_nodes=120)
    features, graph = sick.features.numpy(), sick.graph
    settings: dict[str, Any] = {
        "width": 4 + number,
        "time": 2.0,
        "epochs": 15,
        "preset": "none",
        "random_state": number,
    }
    if number % 2:
        made: Any = HGDERegressor(**settings, diffusivity="ricci" if number == 3 else "isotropic")
        made.fit(features, features[:, 0] + 0.1 * np.asarray(sick.labels), graph=graph)
    else:
        made = HGDEClassifier(**settings, diffusivity="attention" if number == 2 else "isotropic")
        made.fit(features, sick.labels.numpy(), graph=graph)
    outcome = made._fitted.evaluate()
    weights = [value.numpy().tobytes() for value in made._fitted.learner.state_dict().values()]
    scores = json.dumps(outcome, sort_keys=True).encode()
    return hashlib.sha256(b"".join([*weights, scores])).hexdigest()


def memory_mib() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def worker(number: int, expected: str, until: float, pipe: Any) -> None:
    count, wrong, sizes = 0, 0, []
    while time.time() < until:
        wrong += fit_one(number) != expected
        count += 1
        sizes.append(memory_mib())
    pipe.send((count, wrong, sizes))
