"""# Larger than memory

A graph that does not fit into memory is cut into pieces on disk. Training reports in advance how it will run: exact
with everything in memory, exact with the data for gradients on disk, or, if even that does not fit, in batches of
pieces, which is not exact. On the command line:

```bash
hgde partition --edges edges.parquet --nodes nodes.parquet --stream --out parts
hgde train --partitioned parts --memory 4GiB
```

The same in Python, on a small graph:
"""

# %% [markdown]
# ## Cut the graph
#
# Data, preprocessing, task and split are fixed now; they are stored with the pieces.

# %%
import tempfile
from pathlib import Path

from hgde import distributed, make_settings
from hgde.pipeline import prepare

folder = Path(tempfile.mkdtemp())
settings = make_settings({"data": {"name": "disease-sim", "options": ["num_nodes=300"]}})
partition = distributed.make_partition(folder / "parts", prepare(settings), settings, pieces=4)
print(partition.num_nodes, "nodes in", partition.num_pieces, "pieces")

# %% [markdown]
# ## Train on it
#
# `Ranks` are the processes that share the work: one here, as many as you like with `hgde train --ranks 4` or torchrun.

# %%
group = distributed.join()
given = {"preset": "none", "model": {"width": 8, "time": 2.0}, "training": {"epochs": 10}}
run = distributed.start_run(partition, given, group, folder / "run")
print(run.way.words)
summary = run.train()
print(f"test {summary.metric.name}: {100 * summary.mean():.1f} %")

# %% [markdown]
# ## Use it
#
# The run folder is like any other: `hgde predict` and `load` accept it. Predictions are written piece by piece, so the
# graph does not have to fit into memory here either.

# %%
from hgde.distributed.predicting import Predictor
from hgde.pipeline import load

rows = Predictor(load(folder / "run"), partition, group).write_predictions(folder / "predictions.parquet")
group.close()
print(rows, "predictions")
