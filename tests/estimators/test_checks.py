"""scikit-learn's own checks of the estimators, and their parameters."""

import pydoc

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from hgde.estimators import HGDEClassifier, HGDEEmbedder, HGDELinkPredictor, HGDEMultiLabelClassifier, HGDERegressor
from hgde.estimators.parameters import DEFAULT, OWN, settings_of_task
from hgde.models.base import MODELS
from hgde.pipeline.presets import with_preset
from hgde.pipeline.settings import default_flat_settings

ALL = [HGDEClassifier, HGDERegressor, HGDEMultiLabelClassifier, HGDEEmbedder, HGDELinkPredictor]
QUICK = {"preset": "none", "width": 4, "time": 1.0, "epochs": 10, "lr": 0.2, "dropout": 0.0, "warm_up": 0}
QUICK["dtype"] = "float64"

# What does not apply, and why. Two estimators are not in the list of checks at all: the link predictor predicts pairs
# of nodes, so the rows given to `predict` are not those given to `fit`; the multi-label classifier takes a table of 0,
# 1 and -1 as y, which no check gives.
NOT_APPLICABLE = {
    "check_methods_subset_invariance": "a node is predicted together with the rows around it, so a part of the rows on "
    "its own is another graph",
    "check_sample_weight_equivalence_on_dense_data": "a row taken out or repeated is another graph",
    "check_sample_weight_equivalence_on_sparse_data": "a row taken out or repeated is another graph",
    "check_dataframe_column_names_consistency": "columns of a DataFrame are matched by name, whatever their order, and "
    "refused by name; scikit-learn wants another order refused",
}
FOR_CLASSIFIER = {
    "check_classifiers_classes": "uses -1 as a class; here -1 marks a node without label",
}


# The checks that want a good score; all others ask what is accepted, kept and given back, which one epoch tells.
ASK_FOR_A_SCORE = {"check_classifiers_train", "check_regressors_train", "check_class_weight_classifiers"}


def expected_failures(estimator):
    return NOT_APPLICABLE | (FOR_CLASSIFIER if isinstance(estimator, HGDEClassifier) else {})


@parametrize_with_checks(
    [
        HGDEClassifier(**QUICK),
        HGDERegressor(**QUICK),
        HGDEEmbedder(**QUICK | {"epochs": 3}),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_check(estimator, check):
    if check.func.__name__ not in ASK_FOR_A_SCORE:
        estimator = clone(estimator).set_params(epochs=1)
    check(estimator)


@pytest.mark.parametrize("cls", ALL)
def test_every_setting_of_model_and_training_is_a_parameter(cls):
    parameters = cls().get_params()
    flat = default_flat_settings()
    for name, leaf in flat.items():
        if leaf.section in ("model", "training", "preprocessing"):
            assert name in parameters, name
    for name, leaf in settings_of_task(cls.task).items():
        assert parameters[name] in (leaf.default, DEFAULT)


@pytest.mark.parametrize("cls", ALL)
def test_asking_for_the_declared_default_wins_over_a_preset(cls):
    preset = MODELS.get("hgde").preset("default")
    declared = {name: leaf for name, leaf in settings_of_task(cls.task).items() if leaf.path.count(".") == 1}
    for name, leaf in declared.items():
        key = leaf.path.partition(".")[2]
        if leaf.registry is None and key in preset.get(leaf.section, {}):
            settings = with_preset(clone(cls(**{name: leaf.default})).settings(), "default")
            part = settings.model.options if leaf.section == "model" else settings.training
            assert getattr(part, key) == leaf.default, name
    assert "model" not in cls().settings().given


@pytest.mark.parametrize("cls", ALL)
def test_help_explains_each_parameter(cls):
    text = pydoc.render_doc(cls, renderer=pydoc.plaintext)
    words = " ".join(text.replace("|", " ").split())
    for name, leaf in settings_of_task(cls.task).items():
        assert f"{name} : default" in words
        assert " ".join(leaf.help.split()) in words
    for name, (_, explained) in OWN.items():
        assert f"{name} : default" in words
        assert explained in words
