"""# A PyG model with HGDEConv

`HGDEConv` takes and returns Euclidean features, as PyG's layers do, and diffuses on the ball in between. It fits
into an existing model.
"""

# %%
import torch
from torch import nn
from torch_geometric.data import Data

from hgde import HGDEConv, load

taxonomy = load("taxonomy-sim", num_nodes=400)
pairs = taxonomy.graph.undirected_edges
graph = Data(x=taxonomy.features, y=taxonomy.labels, edge_index=torch.cat([pairs, pairs.flip(0)], 1))
torch.manual_seed(0)
chosen = torch.randperm(graph.num_nodes)
train, test = chosen[:200], chosen[200:]


class Net(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.conv = HGDEConv(inputs, 16, time=4.0)
        self.out = nn.Linear(16, classes)

    def forward(self, x, edge_index):
        return self.out(self.conv(x, edge_index))


# %% [markdown]
# Parameters that are points of the ball are geoopt's, so geoopt's optimisers train everything, including the
# curvature.

# %%
import geoopt

net = Net(graph.num_features, int(graph.y.max()) + 1)
optimiser = geoopt.optim.RiemannianAdam(net.parameters(), lr=0.02)
for _ in range(60):
    optimiser.zero_grad()
    loss = nn.functional.cross_entropy(net(graph.x, graph.edge_index)[train], graph.y[train])
    loss.backward()
    optimiser.step()
with torch.no_grad():
    right = net(graph.x, graph.edge_index).argmax(1) == graph.y
curvature = float(net.conv.block.flow.manifold.c.detach())
print(f"test accuracy {100 * right[test].float().mean():.1f} %, curvature {-curvature:.2f}")
