"""Scores of some nodes by the short way: the same as those of all nodes, selected, with the same gradients."""

import pytest
import torch
from scipy import sparse

from hgde import randomness
from hgde.graph import Graph, SparseFeatures
from hgde.models import HGDE, Shape
from hgde.models import hgde as module
from hgde.sections import from_dict

NODES, FEATURES = 400, 30
ASKED = torch.tensor([390, 5, 210])


def problem():
    torch.manual_seed(0)
    path = [(n, n + 1) for n in range(NODES - 1)] + [(n, n + 7) for n in range(0, NODES - 7, 3)]
    words = sparse.random(NODES, FEATURES, 0.2, "csr", random_state=0)
    return Graph.from_edges(path, NODES), SparseFeatures.from_scipy(words)


def make(dtype=torch.float64, **changes):
    torch.manual_seed(0)
    settings = from_dict(HGDE.Settings, {"width": 5, "time": 3.0, "dropout": 0.4, **changes})
    model = HGDE(settings, Shape(FEATURES, NODES, 3)).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def scored(model, way):
    """Scores and gradients of all parameters."""
    graph, features = problem()
    features = features.to(next(model.parameters()).dtype)
    model.zero_grad()
    with randomness.use(randomness.make_generator(3)):
        scores = way(features, graph)
    weights = torch.linspace(-1, 2, scores.numel(), dtype=scores.dtype).view_as(scores)
    (scores * weights).sum().backward()
    return scores.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}


FORMS = {
    "default": {},
    "no residual": {"residual": False},
    "trained residual": {"learn_eta": True},
    "activations": {"activation": "relu", "encoder_activation": "tanh"},
    "fixed curvature": {"space": {"name": "ball", "learn_curvature": False, "curvature": 0.7}},
    "attention": {"diffusivity": {"name": "attention", "heads": 2}},
    "printed": {"diffusivity": "isotropic-printed"},
    "symmetric": {"diffusivity": "symmetric"},
    "hrk4": {"solver": "hrk4"},
    "ham, printed": {"solver": "ham", "diffusivity": "isotropic-printed", "learn_eta": True},
    "half steps": {"solver": {"name": "heuler", "step": 0.5}, "residual": False},
}
OTHER_FORMS = {
    "two layers": {"encoder_layers": 2},
    "state dropout": {"state_dropout": 0.3},
    "hidden dropout": {"hidden_dropout": 0.3},
    "ricci": {"diffusivity": "ricci"},
    "Lorentz": {"space": "lorentz"},
    "hrk4 with attention": {"solver": "hrk4", "diffusivity": "attention"},
}


# Hidden dropout draws a number for each row that is read out, so its draws for fewer rows are others.
@pytest.mark.parametrize("name", [name for name in (*FORMS, *OTHER_FORMS) if name != "hidden dropout"])
def test_equals_all_nodes_selected(name):
    model = make(**{**FORMS, **OTHER_FORMS}[name]).train()
    ours, our_gradients = scored(model, lambda x, graph: model.outputs_of(x, graph, ASKED))
    expected, gradients = scored(model, lambda x, graph: model(x, graph).index_select(0, ASKED))
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)
    assert our_gradients.keys() == gradients.keys()
    for parameter, gradient in gradients.items():
        torch.testing.assert_close(our_gradients[parameter], gradient, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", [*FORMS, *OTHER_FORMS])
def test_which_forms_take_the_short_way(name, monkeypatch):
    taken = []

    def watched(*given):
        taken.append(straight(*given))
        return taken[-1]

    straight = module.Straight.scores
    monkeypatch.setattr(module.Straight, "scores", watched)
    model = make(**{**FORMS, **OTHER_FORMS}[name]).train()
    graph, features = problem()
    model.outputs_of(features.to(torch.float64), graph, ASKED)
    assert (len(taken) > 0 and taken[0] is not None) == (name in FORMS)


def test_hooks_are_heard():
    model, seen = make().train(), []
    model.block.register_forward_hook(lambda *_: seen.append("block"))
    graph, features = problem()
    model.outputs_of(features.to(torch.float64), graph, ASKED)
    assert seen == ["block"]


def test_a_curvature_at_its_limit_has_no_gradient():
    model = make().train()
    with torch.no_grad():
        model.encoder.linear.manifold.curvature.log_scale.fill_(100.0)
    _, gradients = scored(model, lambda x, graph: model.outputs_of(x, graph, ASKED))
    assert gradients["encoder.linear.manifold.curvature.log_scale"] == 0
    assert gradients["encoder.target.curvature.log_scale"] != 0


def test_a_second_derivative_is_refused():
    model = make().train()
    graph, features = problem()
    scores = model.outputs_of(features.to(torch.float64), graph, ASKED)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(scores.sum(), model.encoder.linear.weight, create_graph=True)


def test_an_unstable_flow_is_warned_of_once(caplog):
    model = make(diffusivity="isotropic-printed", residual=False)
    graph, features = problem()
    for _ in range(2):
        model.outputs_of(features.to(torch.float64), graph, ASKED)
    assert sum("unstable" in record.message for record in caplog.records) == 1
