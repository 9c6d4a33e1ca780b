"""The comparator: whoever sees the parameters themselves and learns from shadow models how they look.

Hidden neurons of a network may be renumbered without changing what it computes. They are therefore brought into a
canonical order before the parameters are laid out as a vector. Nothing is poisoned.

Source: Ganju, Wang, Yang, Gunter and Borisov, "Property Inference Attacks on Fully Connected Neural Networks using
Permutation Invariant Representations", CCS 2018, the vector attack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.checking import whole
from leakgauge.errors import ConfigError, ModelError
from leakgauge.escaping import shapes
from leakgauge.models import Model
from leakgauge.models.sklearn import fit, last_step, name_of
from leakgauge.properties.inference import LinearRule
from leakgauge.properties.parameters import GameParameters
from leakgauge.properties.population import Side, Sides
from leakgauge.statistics import Estimate, balanced_accuracy
from leakgauge.streams import GameStream

if TYPE_CHECKING:
    from leakgauge.training import Learner


@dataclass(frozen=True, eq=False)
class Layer:
    """A fully connected layer.

    Args:
        weights: ``[outputs, inputs]``.
        biases: ``[outputs]``.
    """

    weights: Floats
    biases: Floats

    __repr__ = shapes

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or self.biases.shape != (len(self.weights),):
            raise ModelError(
                f"a layer needs weights [outputs, inputs] and as many biases as outputs, got shapes "
                f"{self.weights.shape} and {self.biases.shape}."
            )


Layers: TypeAlias = tuple[Layer, ...]
Key: TypeAlias = Callable[[Layer, Layer], Floats]
"""What the neurons of a layer are sorted by, ``[outputs]``, from the layer and the one after it."""


def weight_sum(layer: Layer, following: Layer) -> Floats:
    """The size of the sum of each neuron's incoming weights; Ganju et al. 2018."""
    sizes: Floats = np.abs(layer.weights.sum(axis=1))
    return sizes


def in_out(layer: Layer, following: Layer) -> Floats:
    """The sizes of each neuron's incoming and outgoing weights, summed; the reading of Chase et al. 2021."""
    summed: Floats = np.abs(layer.weights).sum(axis=1) + np.abs(following.weights).sum(axis=0)
    return summed


def canonical(layers: Sequence[Layer], key: Key = weight_sum) -> Layers:
    """The same network with the neurons of each hidden layer in decreasing order of a key; equal ones stay in order.

    It should be the case that networks that differ by the order of hidden neurons alone, with distinct keys, become
    equal, and that what the network computes does not change.
    """
    sorted_layers = list(layers)
    for place in range(len(sorted_layers) - 1):
        layer, following = sorted_layers[place : place + 2]
        order = np.argsort(-key(layer, following), kind="stable")
        sorted_layers[place] = Layer(layer.weights[order], layer.biases[order])
        sorted_layers[place + 1] = Layer(following.weights[:, order], following.biases)
    return tuple(sorted_layers)


def vector(layers: Sequence[Layer], key: Key = weight_sum) -> Floats:
    """The parameters in canonical order: layer by layer, for each neuron its weights and then its bias, ``[p]``.

    >>> first = Layer(np.array([[1, -2.5], [0.5, 0.5], [-3, 1]]), np.array([0.1, 0.2, 0.3]))
    >>> vector([first, Layer(np.array([[1.0, 2, 3]]), np.zeros(1))]).tolist()
    [-3.0, 1.0, 0.3, 1.0, -2.5, 0.1, 0.5, 0.5, 0.2, 3.0, 1.0, 2.0, 0.0]
    """
    parts = [np.column_stack([layer.weights, layer.biases]).ravel() for layer in canonical(layers, key)]
    return np.concatenate(parts)


def layers_of(model: Model) -> Layers:
    """The layers of a fitted model: scikit-learn's networks and linear classifiers, and torch modules of such layers.

    A linear classifier is one layer: its coefficients and its intercept.

    Raises:
        ModelError: it has no such layers.
    """
    if (module := getattr(model, "module", None)) is not None:
        return _layers_of_module(module)
    estimator = getattr(model, "estimator", None)
    last: Any = last_step(estimator)
    if hasattr(last, "coefs_"):
        return tuple(Layer(w.T.copy(), b) for w, b in zip(last.coefs_, last.intercepts_, strict=True))
    if hasattr(last, "coef_") and hasattr(last, "intercept_"):
        coefficients = np.atleast_2d(last.coef_)
        return (Layer(coefficients, np.broadcast_to(last.intercept_, len(coefficients)).astype(np.float64)),)
    raise ModelError(
        f"{name_of(model if estimator is None else estimator)} shows no layers of weights; the white-box attack is for "
        "fully connected networks and linear classifiers."
    )


@dataclass(frozen=True, eq=False)
class WhiteBox:
    """An attacker who has learned from shadow models how parameters look under either frequency.

    Args:
        scores: from vectors ``[models, p]`` to scores ``[models]``, above 0 for `t1`.
        key: what neurons are sorted by.
    """

    scores: Callable[[Floats], Floats]
    key: Key

    __repr__ = shapes

    def says_t1(self, model: Model) -> bool:
        """Look at a model's parameters and name the coin.

        Raises:
            ModelError: it has no layers.
        """
        return bool(self.scores(vector(layers_of(model), self.key)[None])[0] > 0)


def learn_white_box(vectors: Floats, is_t1: Flags, *, key: Key = weight_sum, classifier: Any = None) -> WhiteBox:
    """Learn from shadow models' vectors, each coordinate standardised on them.

    Args:
        vectors: ``[models, p]``, from :func:`vector`.
        is_t1: under which frequency each was trained, bool ``[models]``.
        key: what neurons were sorted by.
        classifier: any unfitted scikit-learn classifier with probabilities, such as a small `MLPClassifier`; by
            default logistic regression with the penalty of Algorithm 3.
    """
    if classifier is None:
        rule = LinearRule.fitted(vectors, is_t1, 2 / np.sqrt(len(vectors) / 2), standardise=True)
        return WhiteBox(rule.scores, key)
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fitted, _ = fit(make_pipeline(StandardScaler(), clone(classifier)), vectors, is_t1)
    return WhiteBox(lambda asked: np.asarray(fitted.predict_proba(asked)[:, 1] - 0.5), key)


def shadow_vectors(learner: Learner, side: Side, sets: Indices, *, seed: int, key: Key = weight_sum) -> Floats:
    """Train a model on each set, one after another, and lay out its parameters, ``[models, p]``.

    Args:
        learner: of networks or linear classifiers.
        side: whose records the sets are made of.
        sets: rows of each training set, int ``[models, size]``.
        seed: of the learner; each model has one of its own.
        key: what neurons are sorted by.

    Raises:
        ModelError: a model could not be trained, or has no layers.
    """
    seeds = np.random.SeedSequence(seed).generate_state(len(sets), np.uint32)
    models = (learner.fit(side.records[rows], seed=int(s)).model for rows, s in zip(sets, seeds, strict=True))
    return np.array([vector(layers_of(model), key) for model in models])


def play_white_box(
    learner: Learner,
    population: Sides,
    game: GameParameters,
    *,
    n_shadow: int = 500,
    n_targets: int = 100,
    key: Key = weight_sum,
    classifier: Any = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """How often the white-box attacker names the right frequency; models are trained one by one.

    Args:
        learner: of networks or linear classifiers.
        population: whose records are whose.
        game: the parameters; without poison.
        n_shadow: shadow models for each frequency.
        n_targets: target models for each frequency.
        key: what neurons are sorted by.
        classifier: see :func:`learn_white_box`.
        confidence: of the interval, in (0, 1).
        seed: drives every random choice.

    Returns:
        The share of targets named rightly; 0.5 is guessing.

    Raises:
        ConfigError: the game has poison, which this attacker does not use, or a number is out of range.
        DataError: there are too few records.
        ModelError: a model could not be trained, or has no layers.
    """
    if game.poison:
        raise ConfigError(
            f"the white-box attacker inserts no poisoned records, got a poison share of {game.poison}; set it to 0."
        )
    for name, value in (("n_shadow", n_shadow), ("n_targets", n_targets)):
        whole(1)(name, value)
    rng = GameStream.WHITE_BOX_SETS.generator(seed)
    found = {}
    for side, n_models in ((population.attacker, n_shadow), (population.owner, n_targets)):
        is_t1 = np.arange(2 * n_models) % 2 == 1
        sets = side.draw_sets(game.n, np.where(is_t1, game.t1, game.t0), rng)
        found[side.whose] = shadow_vectors(learner, side, sets, seed=int(rng.integers(2**32)), key=key), is_t1
    attacker = learn_white_box(*found[population.attacker.whose], key=key, classifier=classifier)
    vectors, is_t1 = found[population.owner.whose]
    says_t1 = attacker.scores(vectors) > 0
    hits, false = int(says_t1[is_t1].sum()), int(says_t1[~is_t1].sum())
    return balanced_accuracy(hits, n_targets, false, n_targets, confidence=confidence)


def _layers_of_module(module: Any) -> Layers:
    """The linear layers of a torch module, in the order in which it holds them."""
    linear = [part for part in module.modules() if type(part).__name__ == "Linear"]
    if not linear:
        raise ModelError(f"{type(module).__name__} has no linear layer; the white-box attack needs such layers only.")
    arrays = [[p.detach().cpu().numpy().astype(np.float64) for p in (part.weight, part.bias)] for part in linear]
    return tuple(Layer(weights, biases) for weights, biases in arrays)
