"""Scores of some nodes by the short way: the same as those of all nodes, selected, with the same gradients."""

import copy
import pickle
import weakref

import pytest
import torch
from scipy import sparse

from hgde import randomness
from hgde.graph import Graph, SparseFeatures
from hgde.models import HGDE, Shape, straight
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
        taken.append(scores(*given))
        return taken[-1]

    scores = module.Straight.scores
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


def epochs(model, count=3, change=None):
    """Scores and gradients of some epochs in which parameters move, and whatever else changes."""
    graph, features = problem()
    features, found = features.to(torch.float64), []
    with randomness.use(randomness.make_generator(3)):
        for number in range(count):
            if change is not None:
                change(model, number)
            model.zero_grad()
            scores = model.outputs_of(features, graph, ASKED)
            scores.square().sum().backward()
            found.append((scores.detach(), *(p.grad.clone() for p in model.parameters())))
            del scores
            with torch.no_grad():
                for p in model.parameters():
                    p.sub_(0.01 * p.grad)
    return found


def are_same(ours, others):
    pairs = zip(ours, others, strict=True)
    return all(torch.equal(a, b) for mine, its in pairs for a, b in zip(mine, its, strict=True))


class Forgetful(straight.Straight):
    """Makes its passes anew at every call."""

    def scores(self, *given):
        return straight.Straight().scores(*given)


@pytest.mark.parametrize("name", FORMS)
def test_kept_passes_give_the_bits_of_new_ones(name):
    kept, anew = make(**FORMS[name]).train(), make(**FORMS[name]).train()
    anew._straight = Forgetful()
    assert are_same(epochs(kept), epochs(anew))


def _another_dropout(model, number):
    model.encoder.dropout = 0.1 * number


def _evaluated_in_between(model, number):
    model.train(number != 1)


def _another_matrix(model, number):
    if number == 1:
        model.decoder.linear.weight = torch.nn.Parameter(model.decoder.linear.weight.detach() * 2)


def _more_outputs(model, number):
    if number == 1:
        layer = model.decoder.linear
        layer.weight = torch.nn.Parameter(torch.cat([layer.weight.detach()] * 2, 1))
        layer.bias = torch.nn.Parameter(torch.cat([layer.bias.detach()] * 2))


@pytest.mark.parametrize("change", [_another_dropout, _evaluated_in_between, _another_matrix, _more_outputs])
def test_what_changes_between_calls_is_noticed(change):
    kept, anew = make().train(), make().train()
    anew._straight = Forgetful()
    assert are_same(epochs(kept, change=change), epochs(anew, change=change))


def test_two_passes_before_a_gradient_do_not_share_buffers():
    graph, features = problem()
    features, one, two = features.to(torch.float64), make().train(), make().train()
    with randomness.use(randomness.make_generator(3)):
        scores = [one.outputs_of(features, graph, ASKED) for _ in range(2)]
        for given in scores:
            given.square().sum().backward(retain_graph=True)
    scores[0].square().sum().backward()  # once more, after the other's
    with randomness.use(randomness.make_generator(3)):
        first, second = (two.outputs_of(features, graph, ASKED).square().sum() for _ in range(2))
        (2 * first + second).backward()
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-12, atol=1e-14)


def test_passes_are_free_again_once_no_gradient_can_be_asked_for(monkeypatch):
    model, made = make().train(), []
    passes = straight._Passes

    def counted(way):
        made.append(passes(way))
        return made[-1]

    monkeypatch.setattr(straight, "_Passes", counted)
    epochs(model, 4)
    assert len(made) == 1
    monkeypatch.setattr(straight, "KEEP_BYTES", 0)
    model._straight = straight.Straight()
    epochs(model, 3)
    assert len(made) == 4, "large buffers are given back"


def test_nothing_is_kept_when_training_is_over():
    model = make().train()
    epochs(model, 2)
    kept = weakref.ref(model._straight._known[1])
    assert kept() is not None
    model.release()
    assert kept() is None


def test_a_copy_of_a_model_keeps_nothing_of_the_original_s():
    model = make().train()
    epochs(model, 1)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert are_same(epochs(copy.deepcopy(model)), epochs(other))
