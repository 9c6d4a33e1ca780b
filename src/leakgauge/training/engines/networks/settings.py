"""What scikit-learn's ``MLPClassifier`` asks for, as a :class:`Network`, or why it cannot be said that way.

| setting | meaning here |
|---|---|
| ``hidden_layer_sizes``, ``activation`` | the hidden layers; any number of them |
| ``solver`` | ``adam`` and ``sgd``; ``lbfgs`` is refused |
| ``alpha``, ``learning_rate_init``, ``tol`` | as they are |
| ``batch_size`` | clipped to the records that there are; ``auto`` is 200 of them at most |
| ``learning_rate``, ``power_t``, ``momentum``, ``nesterovs_momentum`` | of ``sgd`` |
| ``beta_1``, ``beta_2``, ``epsilon`` | of ``adam``; an epsilon that single precision cannot tell from 0 is refused |
| ``max_iter``, ``n_iter_no_change`` | the most epochs, and how many without a gain end the training |
| ``shuffle`` | whether each epoch has an order of its own; see :mod:`~leakgauge.training.engines.networks.draws` |
| ``random_state`` | replaced by the seed of the model, as in the plain loop |
| ``early_stopping``, ``validation_fraction`` | a validation set is refused |
| ``warm_start``, ``verbose``, ``max_fun`` | change nothing about a model that is fitted once by ``adam`` or ``sgd`` |

Two differences are not settings. scikit-learn computes in double precision where the table is in double precision,
and clips the loss of a record at 36 nats, which only its stopping rule sees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leakgauge.training.engines.networks.group import Network

SMALLEST_ADAM_EPSILON = 1e-18
"""Of Adam: the root of a second moment that is just above the smallest number of single precision."""

AUTO_BATCH_RECORDS = 200
"""Places of a batch where ``batch_size="auto"``."""


def network_of(estimator: Any, n_features: int, n_classes: int) -> Network | str:
    """The network that an ``MLPClassifier`` stands for, or why there is none, in words for the user.

    Args:
        estimator: any estimator; the class is compared exactly, since a subclass may override anything.
        n_features: columns of the matrix that it is given.
        n_classes: classes that its training records have.

    Returns:
        The network with the ``batch_size`` that was asked for (see :func:`fitted_to`), or the reason.

    >>> from sklearn.neural_network import MLPClassifier
    >>> network_of(MLPClassifier((8, 4)), n_features=3, n_classes=2).widths
    (3, 8, 4, 1)
    >>> network_of(MLPClassifier(solver="lbfgs"), n_features=3, n_classes=2)
    "MLPClassifier(solver='lbfgs') does not train in batches; solver='adam' or 'sgd' does"
    """
    reason = _why_not(estimator, n_classes)
    if reason:
        return reason
    sgd = estimator.solver == "sgd"
    return Network(
        widths=(n_features, *map(int, _hidden(estimator)), 1 if n_classes == 2 else n_classes),
        activation=estimator.activation,
        solver=estimator.solver,
        alpha=float(estimator.alpha),
        batch_size=AUTO_BATCH_RECORDS if estimator.batch_size == "auto" else int(estimator.batch_size),
        learning_rate=float(estimator.learning_rate_init),
        schedule=estimator.learning_rate if sgd else "constant",
        power_t=float(estimator.power_t),
        momentum=float(estimator.momentum),
        nesterov=bool(estimator.nesterovs_momentum),
        beta_1=float(estimator.beta_1),
        beta_2=float(estimator.beta_2),
        epsilon=float(estimator.epsilon),
        n_epochs=int(estimator.max_iter),
        tol=float(estimator.tol),
        patience=float(estimator.n_iter_no_change),
    )


def fitted_to(network: Network, n_places: int) -> Network:
    """The network with batches of no more than the places of an epoch."""
    return replace(network, batch_size=min(network.batch_size, n_places))


def _hidden(estimator: Any) -> tuple[Any, ...]:
    sizes = estimator.hidden_layer_sizes
    return tuple(sizes) if hasattr(sizes, "__iter__") else (sizes,)


def _why_not(estimator: Any, n_classes: int) -> str | None:
    from sklearn.neural_network import MLPClassifier

    if type(estimator) is not MLPClassifier:
        return f"{type(estimator).__name__} is not MLPClassifier"
    try:
        estimator._validate_params()
    except ValueError:
        return "scikit-learn refuses the parameters of the MLPClassifier"
    if not all(isinstance(width, int | np.integer) and width > 0 for width in _hidden(estimator)):
        return f"hidden_layer_sizes must be whole numbers above 0, got {estimator.hidden_layer_sizes!r}"
    if estimator.solver == "lbfgs":
        return "MLPClassifier(solver='lbfgs') does not train in batches; solver='adam' or 'sgd' does"
    if estimator.early_stopping:
        return "MLPClassifier(early_stopping=True) takes a validation set out of the training records"
    if estimator.solver == "adam" and estimator.epsilon < SMALLEST_ADAM_EPSILON:
        return f"MLPClassifier(epsilon={estimator.epsilon}) is 0 in single precision"
    if n_classes < 2:
        return "all records have the same class"
    return None
