import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from leakgauge.training.engines.networks.group import Network
from leakgauge.training.engines.networks.settings import fitted_to, network_of


def test_the_defaults_are_those_of_scikit_learn():
    assert network_of(MLPClassifier(), 7, 3) == Network((7, 100, 3))


def test_every_setting_has_its_place():
    estimator = MLPClassifier(
        (8, 4),
        "tanh",
        solver="sgd",
        alpha=0.5,
        batch_size=7,
        learning_rate="invscaling",
        learning_rate_init=0.25,
        power_t=0.75,
        max_iter=3,
        tol=0.125,
        momentum=0.5,
        nesterovs_momentum=False,
        beta_1=0.5,
        beta_2=0.75,
        epsilon=1e-3,
        n_iter_no_change=5,
    )
    expected = Network(
        widths=(9, 8, 4, 1),
        activation="tanh",
        solver="sgd",
        alpha=0.5,
        batch_size=7,
        learning_rate=0.25,
        schedule="invscaling",
        power_t=0.75,
        momentum=0.5,
        nesterov=False,
        beta_1=0.5,
        beta_2=0.75,
        epsilon=1e-3,
        n_epochs=3,
        tol=0.125,
        patience=5,
    )
    assert network_of(estimator, 9, 2) == expected


@pytest.mark.parametrize("sizes", [4, [4], (4,), np.array([4])], ids=repr)
def test_hidden_layers_in_all_forms(sizes):
    assert network_of(MLPClassifier(sizes), 3, 5).widths == (3, 4, 5)


def test_no_hidden_layer():
    assert network_of(MLPClassifier(()), 3, 5).widths == (3, 5)


def test_the_schedule_is_of_sgd_alone():
    assert network_of(MLPClassifier(learning_rate="adaptive"), 3, 2).schedule == "constant"


def test_what_changes_nothing_is_accepted():
    plain = network_of(MLPClassifier(), 3, 2)
    assert network_of(MLPClassifier(warm_start=True, verbose=True, max_fun=3, random_state=5), 3, 2) == plain


def test_patience_may_be_endless():
    assert network_of(MLPClassifier(n_iter_no_change=np.inf), 3, 2).patience == np.inf


def test_batches_are_no_larger_than_the_records():
    auto = network_of(MLPClassifier(), 3, 2)
    assert fitted_to(auto, 1000).batch_size == 200
    assert fitted_to(auto, 150) == replace(auto, batch_size=150)


class Mine(MLPClassifier):
    """A subclass may do anything."""


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Mine(), "Mine is not MLPClassifier"),
        (LogisticRegression(), "LogisticRegression is not MLPClassifier"),
        (MLPClassifier(solver="lbfgs"), "solver='lbfgs'\\) does not train in batches"),
        (MLPClassifier(early_stopping=True), "takes a validation set out of the training records"),
        (MLPClassifier(epsilon=1e-30), "epsilon=1e-30\\) is 0 in single precision"),
        (MLPClassifier(alpha=-1.0), "scikit-learn refuses the parameters of the MLPClassifier"),
        (MLPClassifier((3, 0)), "hidden_layer_sizes must be whole numbers above 0"),
        (MLPClassifier((3, 2.5)), "hidden_layer_sizes must be whole numbers above 0"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refusals_say_why(estimator, message):
    reason = network_of(estimator, 3, 2)
    assert isinstance(reason, str)
    assert re.search(message, reason)


def test_one_class_is_no_task():
    assert network_of(MLPClassifier(), 3, 1) == "all records have the same class"
