"""# Predict links

Which pairs of nodes are linked? Some edges are hidden, the model sees the rest, and a pair is scored by the distance of
its points (`hgde train --task links` does the same).
"""

# %% [markdown]
# ## Train
#
# 85 % of the edges are for training, 5 % for choosing the epoch, 10 % for testing, each with as many unlinked pairs.

# %%
from hgde import fit, make_settings

settings = make_settings(
    {
        "preset": "links-symmetric",  # without it, the model's presets for links compete on your validation part
        "data": {"name": "blocks-homophilous", "options": ["num_nodes=300"]},
        "task": "links",
        "training": {"epochs": 60},
        "run": {"threads": 1},
    }
)
result = fit(settings)
print(f"hgde: test ROC AUC {100 * result.summary.scores('roc_auc')[0]:.1f} %")

# %% [markdown]
# ## Does it beat heuristics?
#
# Common neighbours, paths and feature similarity need no training. `hgde report` shows their scores for every run on
# links, and they are available in Python. On graphs with many triangles they are hard to beat: check before you train.

# %%
from hgde.tasks.baselines import baseline_scores

model = result.models[0]
for name, parts in baseline_scores(model.training_data().problem).items():
    print(f"{name}: test ROC AUC {100 * parts['test']['roc_auc']:.1f} %")

# %% [markdown]
# ## Score pairs of your own
#
# `hgde predict RUN --pairs pairs.csv --out scores.csv`, or `[2, m]` numbers of nodes in Python:

# %%
import torch

pairs = torch.tensor([[0, 1, 2], [5, 150, 299]])
table = model.predict(pairs=pairs)
for source, target, chance in zip(table["source"], table["target"], table["probability"], strict=True):
    print(f"{source} — {target}: {chance:.2f}")
