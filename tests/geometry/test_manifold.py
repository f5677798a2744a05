"""One suite over every manifold: what the contract promises."""

import copy
import pickle

import pytest
import torch

from hgde.geometry import SPACES as REGISTRY
from hgde.geometry import Euclidean, Manifold, PoincareBall, Product, make_space
from hgde.geometry.contract import derivative
from hgde.registry import REGISTRIES
from hgde.sections import SettingsError, choose
from spaces import SPACES


@pytest.fixture(params=SPACES)
def space(request):
    return SPACES[request.param]


def sample(space, seed=0, scale=0.5):
    g = torch.Generator().manual_seed(seed)
    manifold = space.make()
    return manifold, *(manifold.random(6, space.width, scale=scale, generator=g, dtype=torch.float64) for _ in range(3))


def vectors0(space, *size, seed=7):
    """Coordinates of tangent vectors at the origin, up to two radii of curvature long."""
    return 0.3 * torch.randn(*size, space.dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_random_points_are_points(space):
    manifold, x, *_ = sample(space)
    assert x.shape == (6, space.width)
    assert manifold.problems(x) == []
    assert torch.allclose(manifold.project(x), x, atol=1e-12)
    assert manifold.problems(torch.full_like(x, float("nan")))
    assert manifold.problems(x.long())


def test_random_points_have_the_spread_asked_for(space):
    manifold = space.make()
    g = torch.Generator().manual_seed(0)
    x = manifold.random(4000, space.width, scale=0.1, generator=g, dtype=torch.float64)
    assert float(manifold.dist0(x).square().mean()) == pytest.approx(space.dim * 0.01, rel=0.1)


def test_maps_are_consistent(space):
    manifold, x, y, _ = sample(space)
    v = manifold.logmap(x, y)
    assert torch.allclose(manifold.expmap(x, v), y, atol=1e-9)
    assert torch.allclose(manifold.norm(x, v), manifold.dist(x, y), atol=1e-7)
    assert torch.allclose(manifold.inner(x, v, v).sqrt(), manifold.norm(x, v), atol=1e-9)
    assert torch.allclose(manifold.geodesic(x, y, 1.0), y, atol=1e-9)
    half = manifold.geodesic(x, y, 0.5)
    assert torch.allclose(manifold.dist(x, half), 0.5 * manifold.dist(x, y), atol=1e-7)


def test_transport_keeps_inner_products_and_turns_back(space):
    manifold, x, y, z = sample(space)
    v, w = manifold.logmap(x, y), manifold.logmap(x, z)
    there_v, there_w = manifold.transport(x, y, v), manifold.transport(x, y, w)
    assert torch.allclose(manifold.inner(y, there_v, there_w), manifold.inner(x, v, w), atol=1e-9)
    assert torch.allclose(manifold.inner(y, there_w, there_w), manifold.inner(x, w, w), atol=1e-9)
    assert torch.allclose(manifold.transport(y, x, there_w), w, atol=1e-9)
    # A geodesic carries its own velocity; transport from the wrong end would not.
    assert torch.allclose(there_v, -manifold.logmap(y, x), atol=1e-7)


def test_differential_is_the_derivative_and_inverts(space):
    manifold, x, y, z = sample(space)
    assert manifold.has_dexp
    assert manifold.max_order is None
    v, w = manifold.logmap(x, y), manifold.logmap(x, z)
    step = 1e-5
    numeric = (manifold.expmap(x, v + step * w) - manifold.expmap(x, v - step * w)) / (2 * step)
    assert torch.allclose(manifold.dexp(x, v, w), numeric, atol=1e-7)
    assert torch.allclose(manifold.dexp_inv(x, v, manifold.dexp(x, v, w)), w, atol=1e-7)


def test_the_contract_s_own_differential_agrees(space):
    """A new space need not bring one."""
    manifold, x, y, z = sample(space)
    v, w = manifold.logmap(x, y), manifold.logmap(x, z)
    moved = manifold.dexp(x, v, w)
    assert torch.allclose(Manifold.dexp(manifold, x, v, w), moved, atol=1e-7)
    assert torch.allclose(Manifold.dexp_inv(manifold, x, v, moved), w, atol=1e-6)


def test_coordinates_and_dimension_belong_together(space):
    manifold = space.make()
    assert manifold.ambient(space.dim) == space.width
    assert manifold.dimension(space.width) == space.dim


def test_origin_maps_are_inverse_and_measure_twice_the_length(space):
    manifold = space.make()
    v = vectors0(space, 5, 2)
    x = manifold.expmap0(v)
    assert x.shape == (5, 2, space.width)
    assert manifold.problems(x) == []
    assert torch.allclose(manifold.logmap0(x), v, atol=1e-9)
    assert torch.allclose(manifold.dist0(x), 2.0 * v.norm(dim=-1), atol=1e-7)
    o = manifold.origin(5, 2, space.width, dtype=torch.float64)
    assert torch.allclose(manifold.dist(o, x), 2.0 * v.norm(dim=-1), atol=1e-7)
    assert torch.allclose(manifold.expmap0(torch.zeros_like(v)), o, atol=1e-12)


def test_angles_at_the_origin_are_those_of_the_coordinates(space):
    manifold = space.make()
    u, v = vectors0(space, 4), vectors0(space, 4, seed=8)
    o = manifold.origin(4, space.width, dtype=torch.float64)
    at_o = [manifold.logmap(o, manifold.expmap0(w)) for w in (u, v)]
    assert torch.allclose(manifold.inner(o, *at_o), 4.0 * (u * v).sum(-1), atol=1e-8)


def test_transport_from_the_origin(space):
    manifold = space.make()
    u, v = vectors0(space, 4), vectors0(space, 4, seed=8)
    x = manifold.expmap0(u)
    carried = manifold.transport0(x, v)
    assert torch.allclose(manifold.norm(x, carried), 2.0 * v.norm(dim=-1), atol=1e-8)
    o = manifold.origin(4, space.width, dtype=torch.float64)
    at_o = manifold.logmap(o, manifold.expmap0(v))
    assert torch.allclose(carried, manifold.transport(o, x, at_o), atol=1e-7)
    # Along its own geodesic a vector goes on straight.
    assert torch.allclose(manifold.expmap(x, manifold.transport0(x, 0.5 * u)), manifold.expmap0(1.5 * u), atol=1e-7)


def test_the_contract_s_own_origin_maps_agree(space):
    """They are made of the maps at a point and a frame at the origin; a space's own are shorter ways to the same."""
    manifold = space.make()
    v = vectors0(space, 4)
    x = manifold.expmap0(v)
    for name, given in (("expmap0", (v,)), ("logmap0", (x,)), ("dist0", (x,)), ("transport0", (x, v))):
        assert torch.allclose(getattr(Manifold, name)(manifold, *given), getattr(manifold, name)(*given), atol=1e-8)


def test_midpoints(space):
    manifold, x, y, z = sample(space)
    tolerance = 1e-7 if space.karcher else 1e-10
    assert torch.allclose(manifold.midpoint([x, x, x], [0.3, 1.0, 0.2]), x, atol=tolerance)
    middle = manifold.midpoint([x, y], [1.0, 1.0])
    assert manifold.problems(middle) == []
    assert torch.allclose(middle, manifold.geodesic(x, y, 0.5), atol=1e-6)
    weights = [0.5, 1.0, 0.25]
    whole = manifold.midpoint([x, y, z], weights)
    # Only ratios count, order does not, a weight of zero leaves a point out, and a stack is a list.
    assert torch.allclose(manifold.midpoint(torch.stack([x, y, z]), torch.tensor(weights) * 3.0), whole, atol=1e-6)
    assert torch.allclose(manifold.midpoint([z, x, y], [0.25, 0.5, 1.0]), whole, atol=1e-6)
    assert torch.allclose(manifold.midpoint([x, y, z], [1.0, 1.0, 0.0]), middle, atol=1e-6)
    per_point = torch.rand(3, 6, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = [manifold.midpoint([p[i] for p in (x, y, z)], list(per_point[:, i])) for i in range(6)]
    assert torch.allclose(manifold.midpoint([x, y, z], per_point), torch.stack(rows), atol=1e-9)


def test_a_negative_weight_is_the_mirror_image(space):
    manifold, x, y, _ = sample(space)
    mirrored = manifold.expmap0(-manifold.logmap0(y))
    expected = manifold.midpoint([x, mirrored], [1.0, 0.4])
    assert torch.allclose(manifold.midpoint([x, y], [1.0, -0.4]), expected, atol=1e-8)
    signed = torch.tensor([1.0, -0.4], dtype=torch.float64)
    assert torch.allclose(manifold.midpoint([x, y], signed), expected, atol=1e-8)


def test_a_midpoint_wants_a_weight_per_point(space):
    manifold, x, y, _ = sample(space)
    with pytest.raises(ValueError, match="2 points and 3 weights"):
        manifold.midpoint([x, y], [1.0, 1.0, 1.0])


def test_tangent_vectors_are_tangent(space):
    manifold, x, y, _ = sample(space)
    v = manifold.logmap(x, y)
    assert torch.allclose(manifold.tangent(x, v), v, atol=1e-9)
    u = torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    once = manifold.tangent(x, u)
    assert torch.allclose(manifold.tangent(x, once), once, atol=1e-9)
    assert torch.allclose(manifold.logmap(x, manifold.expmap(x, 0.1 * once)), 0.1 * once, atol=1e-7)


def test_riemannian_gradient_is_the_metric_s(space):
    """``<grad f, w>_x = df(w)`` for tangent ``w``."""
    manifold, x, y, z = sample(space)
    x.requires_grad_()
    value = manifold.dist(x, y).square().sum()
    (euclidean,) = torch.autograd.grad(value, x)
    x = x.detach()
    gradient = manifold.egrad2rgrad(x, euclidean)
    w = manifold.logmap(x, z)
    assert torch.allclose(manifold.inner(x, gradient, w), (euclidean * w).sum(-1), atol=1e-6)
    assert torch.allclose(gradient, -2.0 * manifold.logmap(x, y), atol=1e-5)


CURVED = ("ball c=1", "lorentz c=1", "ball x flat", "lorentz x ball x flat", "flat")


@pytest.mark.parametrize("name", CURVED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_at_the_origin_and_at_equal_points(name, dtype):
    space = SPACES[name]
    manifold = space.make()
    for curvature in [m for m in manifold.modules() if type(m).__name__ == "Curvature"]:
        curvature.learnable = True
        curvature.log_scale = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
    o = manifold.origin(2, space.width, dtype=dtype).detach()
    p = manifold.expmap0(torch.full((2, space.dim), 0.3, dtype=dtype)).detach()
    zero = torch.zeros(2, space.dim, dtype=dtype)
    cases = {
        "dist": lambda x, y, v: manifold.dist(x, y),
        "dist0": lambda x, y, v: manifold.dist0(x),
        "logmap": lambda x, y, v: manifold.logmap(x, y),
        "logmap0": lambda x, y, v: manifold.logmap0(x),
        "expmap": lambda x, y, v: manifold.expmap(x, manifold.transport0(x, v)),
        "expmap0": lambda x, y, v: manifold.expmap0(v),
        "norm": lambda x, y, v: manifold.norm(x, manifold.transport0(x, v)),
        "transport": lambda x, y, v: manifold.transport(x, y, manifold.transport0(x, v)),
        "dexp": lambda x, y, v: manifold.dexp(x, manifold.transport0(x, v), manifold.transport0(x, v + 0.1)),
        "dexp_inv": lambda x, y, v: manifold.dexp_inv(x, manifold.logmap(x, y), manifold.transport0(y, v), y),
        "midpoint": lambda x, y, v: manifold.midpoint([x, y, o], [1.0, 0.5, -0.1]),
    }
    for label, function in cases.items():
        for start in (o, p):
            x, y, v = (t.clone().requires_grad_() for t in (start, start, zero))
            value = function(x, y, v)
            assert torch.isfinite(value).all(), label
            assert value.dtype == dtype, label
            wanted = [x, y, v, *manifold.parameters()]
            for gradient in torch.autograd.grad(value.sum(), wanted, allow_unused=True):
                assert gradient is None or torch.isfinite(gradient).all(), label


def test_manifolds_copy_and_pickle(space):
    manifold, x, y, _ = sample(space)
    for other in (copy.deepcopy(manifold), pickle.loads(pickle.dumps(manifold))):
        assert torch.equal(other.dist(x, y), manifold.dist(x, y))


@pytest.mark.parametrize("name", REGISTRY)
def test_every_registered_space_is_built_from_settings(name):
    chosen = choose(REGISTRY, name)
    manifold = make_space(chosen, 6)
    v = 0.2 * torch.randn(4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = manifold.expmap0(v)
    assert x.shape[-1] == manifold.ambient(6)
    assert torch.allclose(manifold.logmap0(x), v, atol=1e-10)
    assert torch.allclose(manifold.dist0(x), 2.0 * v.norm(dim=-1), atol=1e-10)
    assert REGISTRIES["spaces"] is REGISTRY


def test_curvature_settings_reach_the_space():
    for name in ("ball", "lorentz"):
        manifold = make_space(choose(REGISTRY, name, {"curvature": 0.25, "learn_curvature": False}), 3)
        assert float(manifold.c) == 0.25
        assert not list(manifold.parameters())
    product = make_space(choose(REGISTRY, "product", {"factors": ["ball:4", "lorentz", "euclidean"]}), 9)
    assert product.widths == (4, 3, 2)
    assert len(list(product.parameters())) == 2
    assert make_space(choose(REGISTRY, "euclidean"), 3).scale == 2.0


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        (["bal"], r"did you mean 'ball'"),
        (["ball:x"], r"name or name:width, got 'ball:x'"),
        ([], r"at least one"),
        (["product"], r"one product of all"),
    ],
)
def test_factors_that_make_no_sense_are_refused(factors, words):
    with pytest.raises(SettingsError, match=words):
        choose(REGISTRY, "product", {"factors": factors})


def test_factors_must_fill_the_width():
    with pytest.raises(SettingsError, match="do not add up to a width of 6"):
        make_space(choose(REGISTRY, "product", {"factors": ["ball:4", "euclidean:4"]}), 6)


def test_product_names_what_does_not_fit():
    product = Product([PoincareBall(1.0), Euclidean()], [2, 2])
    (words,) = product.problems(torch.zeros(3, 5))
    assert "PoincareBall [0:2], Euclidean [2:4]" in words
    (words,) = product.problems(torch.tensor([[2.0, 0.0, 5.0, 5.0]]))
    assert words.startswith("part 0 (PoincareBall)")
    with pytest.raises(ValueError, match=r"2 \+ 2 = 4 coordinates, got 5"):
        product.expmap(torch.zeros(3, 5), torch.zeros(3, 5))
    with pytest.raises(ValueError, match="one width per part"):
        Product([Euclidean()], [2, 2])


def test_product_of_pythagoras():
    product = Product([Euclidean(), Euclidean()], [1, 1])
    assert float(product.dist(torch.zeros(2), torch.tensor([3.0, 4.0]))) == pytest.approx(5.0)
    assert product.is_flat
    assert not Product([PoincareBall(1.0), Euclidean()], [2, 2]).is_flat


def test_derivative_is_forward_mode_and_differentiable():
    x = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    value = derivative(torch.sin, x, torch.ones(1, dtype=torch.float64))
    (second,) = torch.autograd.grad(value, x)
    assert torch.allclose(second, -torch.sin(x))


def test_a_product_without_curved_factors_has_no_curvature_to_set():
    flat = choose(REGISTRY, "product", {"factors": ["euclidean:2", "euclidean"]}).options
    with pytest.raises(SettingsError, match="curvature has no effect: no factor has a curvature"):
        flat.replace(curvature=2.0)
    assert choose(REGISTRY, "product").options.replace(curvature=2.0).curvature == 2.0
