"""What ``preset = auto`` costs beside one training with the preset it chose: CPU seconds, the smallest of several.

    python benchmarks/auto_cost.py --data disease-sim,taxonomy-sim --repeats 2

The two are run in turn in one process. The bar is 3; the command fails where it is not met.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from hgde.data import open_dataset
from hgde.experiments.tables import load_table
from hgde.pipeline import Result, fit, make_settings
from hgde.sections import overlay

BAR = 3.0
RECORD = Path(__file__).parent.parent / "results" / "auto-cost.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", default="texas,disease-sim,taxonomy-sim,cora", help="columns of the table of defaults"
    )
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    columns = {column.key: column for column in load_table("defaults").data}
    measured = {}
    for key in given.data.split(","):
        settings = overlay(dict(columns[key].settings), {"run": {"threads": 1}})
        graph = open_dataset(make_settings(settings).data)
        fit(make_settings(overlay(settings, {"training": {"epochs": 2}})), dataset=graph)  # compiles and loads
        auto, single, chosen = [], [], "auto"
        for _ in range(given.repeats):
            spent, result = _timed(settings, graph)
            auto.append(spent)
            chosen = result.summary.settings.preset
            spent, alone = _timed(overlay(settings, {"preset": chosen}), graph)
            single.append(spent)
            assert alone.summary.outcomes[0].test == result.summary.outcomes[0].test, "the two differ"
        ratio = min(auto) / min(single)
        measured[key] = {"auto": min(auto), "single": min(single), "ratio": ratio, "preset": chosen}
        print(f"{key:22s} {chosen:18s} auto {min(auto):6.2f} s, alone {min(single):6.2f} s: {ratio:.2f}", flush=True)
    RECORD.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    if any(value["ratio"] > BAR for value in measured.values()):
        sys.exit(f"auto costs more than {BAR:g} times a single training")


def _timed(settings: dict[str, Any], graph: Any) -> tuple[float, Result]:
    began = time.process_time()
    result = fit(make_settings(settings), dataset=graph)
    return time.process_time() - began, result


if __name__ == "__main__":
    main()
