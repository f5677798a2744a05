"""The flow written out node by node from the formulas of the paper, for tests: slow, and sharing nothing with it.

Points are those of the ball of curvature ``-c``; ``edges`` maps ``(i, j)`` to the weight of the edge ``j -> i``.
"""

from __future__ import annotations

import torch


def mobius(x, y, c):
    xy, xx, yy = x @ y, x @ x, y @ y
    return ((1 + 2 * c * xy + c * yy) * x + (1 - c * xx) * y) / (1 + 2 * c * xy + c * c * xx * yy)


def length(v):
    return (v @ v).sqrt()


def exp(x, v, c):
    if not bool((v != 0).any()):
        return x + v
    lam, n = 2 / (1 - c * x @ x), length(v)
    return mobius(x, torch.tanh(c**0.5 * lam * n / 2) * v / (c**0.5 * n), c)


def log(x, y, c):
    if not bool((x != y).any()):
        return 0 * (x - y)
    w = mobius(-x, y, c)
    n, lam = length(w), 2 / (1 - c * x @ x)
    return 2 / (c**0.5 * lam) * torch.atanh(c**0.5 * n) * w / n


def log0(x, c):
    return log(torch.zeros_like(x), x, c)


def midpoint(points, weights, c):
    lams = [2 / (1 - c * p @ p) for p in points]
    top = sum(w * lam * p for w, lam, p in zip(weights, lams, points, strict=True))
    m = top / sum(abs(w) * (lam - 1) for w, lam in zip(weights, lams, strict=True))
    return m / (1 + (1 - c * m @ m).sqrt())


def leaky(x, slope):
    return x if float(x.detach()) > 0 else slope * x


class Neighbourhoods:
    """Who receives from whom, with sums of weights; a loop of weight one is added where a rule counts loops."""

    def __init__(self, edges, count):
        self.edges, self.count = edges, count

    def of(self, i, loops):
        near = {j: w for (k, j), w in self.edges.items() if k == i}
        if loops:
            near.setdefault(i, 1.0)
        return near

    def arriving(self, i, loops):
        return sum(self.of(i, loops).values())

    def leaving(self, j, loops):
        out = {i: w for (i, k), w in self.edges.items() if k == j}
        if loops:
            out.setdefault(j, 1.0)
        return sum(out.values())


def isotropic(near, i, **_):
    total = near.arriving(i, True)
    return {j: w / total for j, w in near.of(i, True).items()}


def printed(near, i, self_loops=False, **_):
    return {
        j: w / (near.arriving(i, self_loops) * near.leaving(j, self_loops)) ** 0.5
        for j, w in near.of(i, self_loops).items()
    }


def symmetric(near, i, **_):
    weights = printed(near, i, True)
    return {**weights, "origin": 1 - sum(weights.values())}


def attention(near, i, z, c, module, **_):
    heads, width = module.heads, z.shape[1]
    total = {}
    for h in range(heads):
        matrix = module.transform[:, h * width : (h + 1) * width]
        score = {
            j: leaky(
                module.target[h] @ (log0(z[i], c) @ matrix) + module.source[h] @ (log0(z[j], c) @ matrix),
                module.negative_slope,
            )
            for j in near.of(i, module.self_loops)
        }
        raw = {j: w * torch.exp(score[j]) for j, w in near.of(i, module.self_loops).items()}
        for j, value in raw.items():
            total[j] = total.get(j, 0.0) + value / sum(raw.values()) / heads
    return total


def ricci(near, i, module, curvature, **_):
    first, _act, last = module.mlp

    def unnormalised(j):
        hidden = curvature[i, j] * first.weight[:, 0] + first.bias
        hidden = torch.stack([leaky(value, 0.2) for value in hidden])
        return torch.exp(last.weight @ hidden + last.bias)

    raw = {j: w * unnormalised(j) for j, w in near.of(i, module.self_loops).items()}
    return {j: value / sum(raw.values()) for j, value in raw.items()}


def asked(z, c, module):
    """Queries and keys of all nodes, for every head."""
    width, logs = z.shape[1], [log0(p, c) for p in z]
    found = []
    for h in range(module.heads):
        q, k = (m[:, h * width : (h + 1) * width] for m in (module.query, module.key))
        found.append([[v @ m for v in logs] for m in (q, k)])
    return found


def affinities(i, heads, nodes, line):
    """``sigmoid(q_i . k_j)`` for every head and some nodes, or the line that stands in for it; heads averaged."""
    total = [0.0] * len(nodes)
    for queries, keys in heads:
        if line:
            reach = max(length(a) for a in queries) * max(length(b) for b in keys)
            slope = min(0.5 / reach, torch.tensor(0.25, dtype=reach.dtype))
            raw = [0.5 + slope * queries[i] @ keys[j] for j in nodes]
        else:
            raw = [torch.sigmoid(queries[i] @ keys[j]) for j in nodes]
        all_of_them = sum(raw)
        total = [t + r / all_of_them / len(heads) for t, r in zip(total, raw, strict=True)]
    return total


def centroid(z, weights, c):
    """The Lorentz centroid: the weighted sum on the hyperboloid, scaled back onto it, read on the ball."""
    lams = [2 / (1 - c * p @ p) for p in z]
    time = sum(w * (lam - 1) for w, lam in zip(weights, lams, strict=True))
    space = sum(w * lam * p for w, lam, p in zip(weights, lams, z, strict=True))
    return space / (time + (time**2 - c * space @ space).sqrt())


def exact_sum(z, i, c, heads, nodes):
    weights = affinities(i, heads, nodes, line=False)
    return sum(g * log(z[i], z[j], c) for j, g in zip(nodes, weights, strict=True))


def cheap_sum(z, i, c, heads, nodes):
    weights = affinities(i, heads, nodes, line=True)
    return log(z[i], centroid([z[j] for j in nodes], weights, c), c)


def far_sum(z, i, c, heads, halves):
    """The sum over all nodes; with halves of landmarks, over these and, cheaply, over all."""
    everyone = range(len(z))
    if halves is None:
        return exact_sum(z, i, c, heads, everyone)
    left_out = [exact_sum(z, i, c, heads, half) - cheap_sum(z, i, c, heads, half) for half in halves]
    return cheap_sum(z, i, c, heads, everyone) + sum(left_out) / 2


def flow(z, z0, near, c, eta, local, beta=0.0, module=None, halves=None):
    """``F(z)`` of every node; ``local(i)`` gives weights by node (and ``"origin"``), ``module`` a global part."""
    out, heads = [], None if module is None else asked(z, c, module)
    for i in range(len(z)):
        v = torch.zeros_like(z[i])
        for j, weight in local(i).items():
            target = torch.zeros_like(z[i]) if j == "origin" else z[j]
            v = v + weight * log(z[i], target, c)
        if module is not None:
            v = (1 - beta) * v + beta * far_sum(z, i, c, heads, halves)
        moved = exp(z[i], v, c)
        out.append(moved if eta is None else midpoint((moved, z[i], z0[i]), eta, c))
    return torch.stack(out)
