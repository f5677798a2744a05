"""# Predict links

Which pairs of nodes are linked? Edges are hidden, the model sees the rest, and pairs are scored by their distance in
hyperbolic space (`hgde train --task links` does the same).
"""

# %%
import torch

from hgde import HGDELinkPredictor, load

tree = load("tree-random", num_nodes=300)
predictor = HGDELinkPredictor(width=4, time=1.0, epochs=60, threads=1, random_state=0)
predictor.fit(tree.features, graph=tree.graph)

# %% [markdown]
# Pairs are numbers of nodes, a pair a row. Some that are linked, and as many drawn at random:

# %%
generator = torch.Generator().manual_seed(0)
linked = tree.graph.undirected_edges.T[:100]
drawn = torch.randint(tree.num_nodes, linked.shape, generator=generator)
chances = [predictor.predict_proba(pairs)[:, 1] for pairs in (linked, drawn)]
print(f"mean probability: linked {chances[0].mean():.2f}, drawn at random {chances[1].mean():.2f}")
assert chances[0].mean() > chances[1].mean()

# %% [markdown]
# ## Does it beat what costs nothing?
#
# Common neighbours, shortest paths and their like need no training. `hgde report` puts them beside every run on links,
# and the same numbers are had from Python; the test part has edges and non-edges that no training saw.

# %%
from hgde import fit, make_settings
from hgde.tasks.baselines import baseline_scores

settings = make_settings(
    {
        "preset": "none",
        "data": {"name": "tree-random", "options": ["num_nodes=300"]},
        "task": "links",
        "model": {"width": 4, "time": 1.0},
        "training": {"epochs": 60},
        "run": {"threads": 1},
    }
)
result = fit(settings)
problem = result.models[0].training_data().problem
print(f"{'hgde':24s} ROC AUC {100 * result.summary.scores('roc_auc')[0]:.1f} %")
for name, parts in baseline_scores(problem).items():
    print(f"{name:24s} ROC AUC {100 * parts['test']['roc_auc']:.1f} %")
