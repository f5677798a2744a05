"""# Your own graph

From two CSV files to predictions and a report. Everything here can also be done by a command, given above each cell.
"""

# %% [markdown]
# ## The files
#
# Edges name two nodes each. The table of nodes has an `id`, a `label` (empty where it is not known) and any number of
# feature columns: numbers, words or empty cells. We simulate an epidemic on a tree of contacts, to have
# something to read.

# %%
import csv
import tempfile
from pathlib import Path

from hgde import load

folder = Path(tempfile.mkdtemp())
epidemic = load("disease-sim", num_nodes=300)
with open(folder / "edges.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["source", "target"])
    rows.writerows((f"n{u}", f"n{v}") for u, v in epidemic.graph.undirected_edges.T.tolist())
with open(folder / "nodes.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["id", "label", *(f"x{k}" for k in range(epidemic.num_features))])
    for node, (label, features) in enumerate(zip(epidemic.labels.tolist(), epidemic.features.tolist(), strict=True)):
        rows.writerow([f"n{node}", ("well", "ill")[label], *(f"{x:.3f}" for x in features)])

print((folder / "nodes.csv").read_text().splitlines()[1][:60], "...")

# %% [markdown]
# ## Train
#
# `hgde train --edges edges.csv --nodes nodes.csv --seeds 2 --out run`
#
# Labelled nodes are split at random into parts for training, validation and testing (a column
# `split` overrides this). By default the preset is chosen on the validation part; here one is named, to be quick.

# %%
from hgde import fit, make_settings

settings = make_settings(
    {
        "preset": "default",
        "data": {"edges": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv")},
        "training": {"epochs": 60},
        "run": {"seeds": 2, "threads": 1},
    }
)
result = fit(settings, folder / "run")
summary = result.summary
print(f"test {summary.metric.name}: {100 * summary.mean():.1f} ± {100 * summary.std():.1f} %")

# %% [markdown]
# ## Look at it
#
# `hgde report run` writes one HTML file that works offline: scores next to baselines that need no training, curves,
# confusion matrix, calibration, the interactive disk, the worst mistakes, and the command that repeats the run.

# %%
from hgde.report.from_run import report_of_run
from hgde.report.page import write_report

report = report_of_run(folder / "run")
page = write_report(report, folder / "run" / "report", forms=("html",)).html
print(report.summary)
print(page.name, f"{page.stat().st_size / 1e6:.1f} MB")

# %% [markdown]
# ## Use it
#
# `hgde predict run --out predictions.csv` and, on another graph, `--edges other.csv --nodes others.csv`. The folder
# holds the model, its preprocessing and a copy of the data; it can be moved to another machine.

# %%
from hgde import pipeline

model = pipeline.load(folder / "run")
table = model.predict()
for row in range(3):
    print(table["id"][row], table["prediction"][row], table["part"][row])
