"""The maps at the origin that every space has by default, on one whose metric there is neither unit nor diagonal."""

import pytest
import torch

from hgde.geometry import Lorentz, Manifold

GRAM = torch.tensor([[4.0, 1.0, 0.5], [1.0, 2.0, -0.3], [0.5, -0.3, 1.5]], dtype=torch.float64)


class Skewed(Manifold):
    """Flat space with ``<u, v> = u^T G v``."""

    def inner(self, x, u, v):
        return ((u @ GRAM) * v).sum(-1)

    def expmap(self, x, v):
        return x + v

    def logmap(self, x, y):
        return y - x

    def transport(self, x, y, v):
        return v

    def egrad2rgrad(self, x, g):
        return torch.linalg.solve(GRAM, g.unsqueeze(-1)).squeeze(-1)

    def origin(self, *size, dtype=None, device=None):
        return torch.zeros(*size, dtype=dtype, device=device)


def test_the_frame_is_orthonormal_in_the_metric():
    frame = Skewed().frame0(3, dtype=torch.float64, device=torch.device("cpu"))
    torch.testing.assert_close(frame @ GRAM @ frame.T, torch.eye(3, dtype=torch.float64))


def test_origin_maps_are_inverse_and_measure_twice_the_length():
    space = Skewed()
    v = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = space.expmap0(v)
    torch.testing.assert_close(space.logmap0(x), v)
    lengths = torch.einsum("ni,ij,nj->n", x, GRAM, x).sqrt()
    torch.testing.assert_close(lengths, 2 * v.norm(dim=-1))


@pytest.mark.parametrize("c", [0.25, 4.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_hyperboloid_reports_points_beyond_its_reach(c, dtype):
    space = Lorentz(c)
    reach = {torch.float32: 12.2, torch.float64: 28.3}[dtype]
    for share, words in ((0.98, 0), (1.02, 1)):
        # sinh(s) / sqrt(c) and cosh(s) / sqrt(c): a point s radii of curvature away.
        s = torch.tensor(share * reach, dtype=torch.float64)
        point = torch.stack([s.cosh(), s.sinh()])[None] / c**0.5
        assert len(space.problems(point.to(dtype))) == words, share
