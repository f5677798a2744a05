"""One run of a stored column by the code of 0.1.0 (whose ``src`` is first on the path); prints its score and losses."""

from __future__ import annotations

import json
import sys


def main() -> None:
    import torch
    from hgde.experiments.rows import read_rows
    from hgde.training.prepare import load_dataset, make_task
    from hgde.training.run import train

    table, key, column = sys.argv[1].split("/")
    run, dtype = int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    row = next(row for row in read_rows(table) if row.key == key)
    row.settings["dtype"] = dtype
    settings = row.settings_of(column, run)
    dataset = load_dataset(settings)
    summary = train(settings, dataset=dataset, task=make_task(dataset, settings))
    outcome = summary.outcomes[0]
    history = outcome.history
    losses = history["loss"] if isinstance(history, dict) else [record["loss"] for record in history]
    print(json.dumps({"score": 100 * outcome.test[summary.metric], "losses": losses}))


if __name__ == "__main__":
    main()
