"""One run of a stored column by the present code, what 0.1.0 did by default written out; prints score, losses."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

SPARSE = ("cora", "citeseer", "pubmed", "texas", "wisconsin", "cornell", "20news")
"""Sets whose rows 0.1.0 scaled to sum one when nothing was said."""

DEFAULTS_OF_BEFORE = {
    "preset": "none",
    "warm_up": 0,
    "smoothing": 0.0,
    "calibrate": False,
    "start_distance": 0.0,
    "clip": None,
}


def settings_of(row: dict[str, Any], column: str, run: int, dtype: str) -> dict[str, Any]:
    """The flat settings of a stored row in today's names."""
    flat = {**row["settings"], **row["columns"][column], "seed": run, "dtype": dtype}
    if row.get("vary") == "split":
        flat["split"] = run
    if flat.get("diffusivity", "isotropic") == "isotropic":
        flat["diffusivity"] = "isotropic-printed"
    if flat.get("metric") == "f1":
        flat["metric"] = "binary_f1"
    if flat.get("weight_decay_rest") == 0.0:
        del flat["weight_decay_rest"]
    if flat.get("normalise", "auto") == "auto" and flat["data"] in SPARSE:
        flat["normalise"] = "rows"
    for key, value in DEFAULTS_OF_BEFORE.items():
        if not (key == "smoothing" and flat.get("keep") == "loss"):
            flat.setdefault(key, value)
    return flat


def main() -> None:
    import torch

    from hgde.pipeline import fit, make_settings
    from hgde.pipeline.settings import place_flat
    from hgde.sections import SettingsError, nested

    rows, column, run, dtype = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    flat = settings_of(tomllib.loads(rows.read_text(encoding="utf-8")), column, run, dtype)
    without_effect: list[str] = []
    while True:
        try:
            settings = make_settings(nested(place_flat(flat)))
            break
        except SettingsError as error:
            # 0.1.0 took settings that could not act; they are refused now, by name, and are left out here one by one.
            named = str(error).split()[0].split(".")[-1]
            name = named if named in flat else next((key for key in flat if key in str(error)), None)
            if name is None:
                raise
            without_effect.append(name)
            del flat[name]
    summary = fit(settings).summary
    losses = [record["loss"] for record in summary.outcomes[0].history]
    print(json.dumps({"score": summary.mean() * 100, "losses": losses, "without_effect": without_effect}))


if __name__ == "__main__":
    main()
