"""Exceptions of the user's code cost the numbers that need it, never the audit; and their text is shown nowhere."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from leakgauge.auditing import Queries, ReleaseRule, Settings, TargetProperty, Verdict, audit, subject
from leakgauge.auditing.document import Document, dump
from leakgauge.auditing.explain import explain_subject as explain
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.settings import PropertyGames
from leakgauge.defences import LabelsOnly
from leakgauge.errors import ModelError, UserCodeError, user_code
from leakgauge.influence import pdtp, search
from leakgauge.membership import left_out_error
from leakgauge.models import FunctionProbabilities, LabelAccess, ProbabilityAccess, RegressionAccess, answers, wrap
from leakgauge.protecting import protect
from leakgauge.records import Records
from leakgauge.training import DenseSubsets, FunctionLearner, Learner, SklearnLearner, train_many

SECRET = "Fabry"
"""A diagnosis that one person has: the text of an exception names it."""

N = 60
PERSON = 5
FEW = Settings(n_shadows=8, n_influence=20, rule=ReleaseRule(queries=Queries.DIRECT))


def people(n: int = N, unique: int = 1, seed: int = 0, *, numbers: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and holdout tables; as many members as ``unique`` have a diagnosis of their own."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.normal(size=2 * n), "diagnosis": rng.choice(["flu", "cold"], 2 * n)})
    told = table.age + rng.normal(size=2 * n)
    table["ill"] = told if numbers else np.where(told > 0, "yes", "no")
    for person in range(unique):
        table.loc[PERSON + person, "diagnosis"] = f"{SECRET}-{person}"
    return table[:n].reset_index(drop=True), table[n:].reset_index(drop=True)


def pipeline(last, **options):
    """With an encoder that, unless told otherwise, raises for a category it was not fitted on, and names it."""
    encoder = OneHotEncoder(sparse_output=False, **options)
    return make_pipeline(ColumnTransformer([("d", encoder, ["diagnosis"])], remainder="passthrough"), last)


def audited(last, train, holdout, settings=FEW, **options):
    model = pipeline(last, **options).fit(train.drop(columns="ill"), train.ill)
    return audit(model, train=train, holdout=holdout, target="ill", settings=settings)


def of(result, word: str):
    return [finding for finding in result.findings if word in finding.measure]


# ------------------------------------------------------------------ one person with a category of their own


@pytest.mark.parametrize(
    "last",
    [LogisticRegression(), pytest.param(GaussianNB(), marks=pytest.mark.slow)],
    ids=lambda one: type(one).__name__,
)
def test_one_person_with_a_unique_category_makes_the_attacks_with_shadow_models_cannot_tell(last):
    result = audited(last, *people())
    (shadows,) = of(result, "with shadow models")
    assert shadows.verdict is Verdict.CANNOT_TELL
    assert shadows.reason.startswith("4 of 8 shadow models could not be trained or could not predict all records")
    assert "raised ValueError in" in shadows.reason
    assert 'handle_unknown="ignore"' in shadows.remedy
    names = {"gap", "confidence", "loss-threshold", "gradients", "learned"}
    assert {attack.name for attack in result.attacks} == names
    assert SECRET not in dump(Document.of("x", [result]))


def test_with_an_encoder_that_ignores_unknown_categories_all_attacks_are_carried_out():
    """The same data: what was missing above was the model's answers and nothing else."""
    result = audited(LogisticRegression(), *people(), handle_unknown="ignore")
    assert of(result, "with shadow models") == []
    assert {"rmia", "lira", "distance"} < {attack.name for attack in result.attacks}


@pytest.mark.long
def test_the_person_without_whom_no_model_answers_has_no_pdtp_and_is_never_safe():
    every = replace(FEW, n_shadows=0, n_influence=None)
    result = audited(LogisticRegression(C=1e-4), *people(n=30), every)
    (direct,) = of(result, "PDTP")
    assert result.influence.n_failed == 1
    assert result.influence.largest < 0.1  # of the others, whom strong regularisation protects
    assert direct.verdict is Verdict.CANNOT_TELL
    assert "training without 1 record failed" in direct.reason
    assert direct.estimate.high == np.inf
    without = [row for row in result.records if row.member and row.pdtp is None]
    assert len(without) == 1
    # Where the person is like others, the same model passes.
    (other,) = of(audited(LogisticRegression(C=1e-4), *people(n=30, unique=0), every), "PDTP")
    assert other.verdict is Verdict.PASSES


def test_where_nearly_every_shadow_model_fails_the_audit_goes_on():
    result = audited(GaussianNB(), *people(unique=6))
    (shadows,) = of(result, "with shadow models")
    assert shadows.verdict is Verdict.CANNOT_TELL
    assert result.attacks
    assert result.verdict is not Verdict.PASSES


def test_the_gate_keeps_what_could_not_be_told_whatever_the_limit():
    result = audited(LogisticRegression(C=1e-4), *people())
    again = apply(Document.of("x", [result]), Limits(advantage=0.9))
    (shadows,) = [one for one in again.audits[0].findings if "with shadow models" in one.measure]
    assert shadows.verdict is Verdict.CANNOT_TELL
    assert shadows.threshold == 0.9
    assert again.verdict is not Verdict.PASSES


def test_the_attack_of_a_regressor_is_judged_without_the_person():
    result = audited(Ridge(), *people(n=30, numbers=True))
    names = {"error-both-known", "error-below-training-error", "gradients", "learned"}
    assert {attack.name for attack in result.attacks} == names
    assert of(result, "with shadow models")[0].verdict is Verdict.CANNOT_TELL


def test_the_error_of_a_regressor_on_other_records_leaves_out_who_has_none():
    train = Records.from_frame(people(n=30, numbers=True)[0], target="ill").with_native("pandas")
    found = left_out_error(SklearnLearner(pipeline(Ridge())), train, seed=0)
    ignoring = left_out_error(SklearnLearner(pipeline(Ridge(), handle_unknown="ignore")), train, seed=0)
    assert found == pytest.approx(ignoring, rel=0.1)
    assert found != ignoring


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (False, "call it with all 40 at once to see what it raises"),
        (True, "some have missing values, which it has to take"),
    ],
)
def test_a_model_that_raises_is_not_told_about_encoders_where_there_are_no_categories(missing, said):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = GaussianNB().fit(X[:20], y[:20]) if missing else BadLabels()
    X[30, 1] = np.nan if missing else 0.0
    with pytest.raises(UserCodeError, match=said) as error:
        audit(model, train=(X[:20], y[:20]), holdout=(X[20:], y[20:]), settings=FEW)
    assert "encoder" not in str(error.value)


def test_a_holdout_that_the_model_cannot_answer_about_is_bad_input():
    holdout, train = people()
    with pytest.raises(UserCodeError, match=r"raised ValueError in predict_log_proba; it must .* encoder") as error:
        audited(GaussianNB(), train, holdout)
    assert SECRET not in str(error.value)


@pytest.mark.long
def test_defences_and_explanations_go_on_too():
    train, holdout = people()
    what = subject(pipeline(GaussianNB()).fit(train.drop(columns="ill"), train.ill), train, holdout, target="ill")
    found = protect(what, replace(FEW, n_influence=0), [LabelsOnly()])
    assert [one.defence.name for one in found.tried] == ["unchanged", "labels-only"]
    assert all(of(one.result, "with shadow models")[0].verdict is Verdict.CANNOT_TELL for one in found.tried)
    assert explain(what, FEW).steps


# ------------------------------------------------------------------ failures that hang on who was trained on


def noisy(records, seed):
    """A model that learned nothing: its answers hang on the record and the seed alone."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=records.features.shape[1])
    return FunctionProbabilities(
        lambda X: np.column_stack([1 / (1 + np.exp(X @ weights)), 1 / (1 + np.exp(-X @ weights))]), records.schema
    )


def unless_a_twin_is_there(records, seed):
    if not np.isin([9.0, 9.5], records.features[:, 0]).any():
        raise ValueError(SECRET)
    return noisy(records, seed)


@pytest.mark.long
def test_shadow_models_that_fail_for_want_of_a_person_show_no_leak_where_there_is_none():
    """The null: a model that learned nothing, and shadow models that fail unless one of two members is in them.

    Failures hang on the shadow models' own training sets, so nothing is found: each audit fails with probability at
    most 2.5 % (the lower ends of all intervals hold together), and one of 12 audits does with probability 26 % at most;
    at these seeds none does.
    """
    failed = n_unbalanced = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(160, 3)), rng.integers(0, 2, 160)
        X[:2, 0] = 9, 9.5
        settings = Settings(seed=seed, n_shadows=16, n_influence=0, rule=ReleaseRule(dtp=None, advantage=0.1))
        learner = FunctionLearner(unless_a_twin_is_there)
        result = audit(learner, train=(X[:80], y[:80]), holdout=(X[80:], y[80:]), settings=settings)
        lost = [note for note in result.notes if "shadow models could not be trained" in note]
        assert all(SECRET not in note and "ValueError" in note for note in lost)
        assert {row.success for row in result.records} == {None} or not lost
        failed += result.verdict is Verdict.FAILS
        n_unbalanced += bool(lost) and "lira" in {attack.name for attack in result.attacks}
    assert failed == 0
    assert n_unbalanced > 6  # the attacks were carried out with the models that were left


def test_no_model_at_all_is_no_shadow_model():
    def only_the_training_set(records, seed):
        if 0.125 not in records.features[:, 0] or 0.25 not in records.features[:, 0]:
            raise RuntimeError(SECRET)
        return noisy(records, seed)

    X, y = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80) % 2
    X[:2, 0] = 0.125, 0.25
    learner = FunctionLearner(only_the_training_set, randomised=False)
    settings = replace(FEW, n_shadows=4, seed=3)
    result = audit(learner, train=(X[:40], y[:40]), holdout=(X[40:], y[40:]), settings=settings)
    assert of(result, "with shadow models")[0].verdict is Verdict.CANNOT_TELL
    assert of(result, "PDTP")[0].verdict is not Verdict.PASSES


# ------------------------------------------------------------------ everything that may raise


class Raises(ClassifierMixin, BaseEstimator):
    """Raises where it is told to, after the first model (the one that is audited) was trained and asked."""

    calls = 0

    def __init__(self, where="predict_proba", error=ValueError):
        self.where = where
        self.error = error

    def _maybe(self, where):
        if where == self.where and Raises.calls > 1:
            raise self.error(SECRET)

    def fit(self, X, y):
        Raises.calls += 1
        self.classes_ = np.unique(y)
        self._maybe("fit")
        return self

    def predict_proba(self, X):
        self._maybe("predict_proba")
        return np.tile([0.5, 0.5], (len(X), 1))

    def predict(self, X):
        return np.repeat(self.classes_[0], len(X))


class Panic(BaseException):
    """As libraries in other languages raise them: no ``Exception``."""


RAISED = [ValueError, KeyError, MemoryError, RecursionError, SystemExit, StopIteration, GeneratorExit, Panic]


@pytest.mark.parametrize(
    ("error", "where"),
    [
        pytest.param(error, where, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, error in enumerate(RAISED)
        for j, where in enumerate(["fit", "predict_proba"])
    ],
)
def test_whatever_is_raised_wherever_is_counted(where, error, monkeypatch):
    monkeypatch.setattr(Raises, "calls", 0)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    data = {"train": (X[:30], y[:30]), "holdout": (X[30:], y[30:])}
    result = audit(Raises(where, error), **data, settings=replace(FEW, rule=ReleaseRule(advantage=0.99)))
    assert result.verdict is Verdict.CANNOT_TELL
    assert len(of(result, "with shadow models")) == 1
    said = dump(Document.of("x", [result]))
    assert error.__name__ in said
    assert SECRET not in said


def test_ctrl_c_is_no_failure_of_the_model(monkeypatch):
    monkeypatch.setattr(Raises, "calls", 0)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    with pytest.raises(KeyboardInterrupt):
        audit(Raises("fit", KeyboardInterrupt), train=(X[:30], y[:30]), holdout=(X[30:], y[30:]), settings=FEW)


def test_an_import_that_ctrl_c_broke_is_ctrl_c():
    def half_imported():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise ImportError("half of a module") from interrupt

    with pytest.raises(KeyboardInterrupt), user_code("x", "fit"):
        half_imported()


def raises(*_):
    raise OSError(SECRET)


class BadLabels(LabelAccess):
    labels = raises


class BadProbabilities(ProbabilityAccess):
    log_probabilities = raises


class BadNumbers(RegressionAccess):
    predict = raises


class Answers(ProbabilityAccess):
    def __init__(self, given):
        self.given = given

    def log_probabilities(self, X):
        return self.given


class Says(LabelAccess):
    def __init__(self, given):
        self.given = given

    def labels(self, X):
        return self.given


RECORDS = Records.from_arrays(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BadLabels(), "BadLabels raised OSError in labels"),
        (BadProbabilities(), "BadProbabilities raised OSError in log_probabilities"),
        (BadNumbers(), "BadNumbers raised OSError in predict"),
        (FunctionProbabilities(raises, RECORDS.schema), "raises raised OSError in predict_proba"),
        (FunctionProbabilities(lambda X: [["a", "b"]] * len(X), RECORDS.schema), "raised ValueError in predict_proba"),
        (Answers(np.full((20, 2), 0.5)), "Answers gave NaN or a log-probability above 0 for 20 of 20"),
        (Answers(np.full((20, 2), np.nan)), "Answers gave NaN"),
        (Answers(np.zeros((20, 3))), r"Answers gave an array of shape \(20, 3\)"),
        (Answers("no"), "Answers raised ValueError in log_probabilities"),
        (Says(np.zeros(19, dtype=int)), r"Says gave labels of shape \(19,\)"),
        (Says(np.zeros(20)), "type float64"),
        (Says(np.full(20, 2)), "Says predicted a label that is not a class for 20 of 20"),
        (Says(np.full(20, -1)), "Says predicted a label that is not a class"),
    ],
)
def test_models_of_ones_own_are_told_by_their_class(model, message):
    with pytest.raises(ModelError, match=message) as error:
        answers(model, RECORDS.features, 2)
    assert SECRET not in str(error.value)


class OwnLearner(Learner):
    name = "own"
    randomised = False

    def fit(self, records, *, seed):
        raise OSError(SECRET)

    def fingerprint(self):
        return "own"


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (OwnLearner(), "own raised OSError in training on 10 records"),
        (FunctionLearner(raises), "raises raised OSError in training"),
        (FunctionLearner(lambda *_: None), "must be a ProbabilityAccess"),
        (FunctionLearner(lambda *_: sys.exit(0)), "raised SystemExit"),
        (SklearnLearner(GaussianNB(priors=[2, 3])), "GaussianNB raised ValueError in fit on 10 records"),
    ],
)
def test_learners_that_cannot_train_are_counted(learner, message):
    members = np.arange(20) < 10
    with pytest.raises(ModelError, match=message) as error:
        train_many(learner, RECORDS, DenseSubsets(np.stack([members, ~members])), seed=0)
    assert SECRET not in str(error.value)


def test_a_label_that_is_not_among_the_classes_is_not_quoted():
    class Foreign(Raises):
        predict_proba = property(lambda self: getattr(self, "nothing"))  # noqa: B009 - hides it from hasattr

        def predict(self, X):
            return np.repeat(SECRET, len(X))

    model = wrap(Foreign().fit(RECORDS.features, RECORDS.labels), RECORDS.schema)
    with pytest.raises(ModelError, match="a label that is not among its classes_") as error:
        answers(model, RECORDS.features, 2)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("given", [LogisticRegression, pipeline, GaussianNB], ids=lambda one: one.__name__)
def test_a_class_or_function_where_an_instance_is_expected(given):
    train, holdout = people(unique=0)
    with pytest.raises(ModelError, match=r"is a class; give an instance of it|cannot be audited"):
        audit(given, train=train, holdout=holdout, target="ill")
    if isinstance(given, type):
        with pytest.raises(ModelError, match=rf"such as {given.__name__}\(\)"):
            SklearnLearner(given)


# ------------------------------------------------------------------ searches, columns, properties


def fussy(records, seed):
    """Answers about numbers up to 1 only."""
    share = float(np.mean(records.labels))

    def probabilities(X):
        if (np.asarray(X)[:, 0] > 1).any():
            raise ValueError(SECRET)
        return np.tile([1 - share, share], (len(X), 1))

    return FunctionProbabilities(probabilities, records.schema)


def test_a_search_that_a_model_ends_keeps_what_it_found():
    X = np.linspace(0, 1, 30)[:, None]
    records = Records.from_arrays(X, (np.arange(30) % 3 == 0).astype(int))
    found = search(FunctionLearner(fussy, randomised=False), records, seed=0, n_queries=200, beyond=5.0)
    assert found.failures
    assert all(reason.startswith("fussy") or "raised ValueError" in reason for reason in found.failures.values())
    assert len(found.known().which) == np.count_nonzero(~np.isnan(found.values))
    own = pdtp(FunctionLearner(fussy, randomised=False), records, seed=0).values
    asked = ~np.isnan(found.values)
    assert (found.values[asked] >= own[asked] - 1e-12).all()


def test_a_column_that_the_model_cannot_be_asked_about_does_not_lose_the_others():
    train, holdout = people(unique=0)
    train["town"], holdout["town"] = (np.where(np.arange(N) % 2 == 0, "a", "b") for _ in range(2))
    known = OneHotEncoder(categories=[["a", "b"]])
    encoder = ColumnTransformer(
        [("d", OneHotEncoder(), ["diagnosis"]), ("t", known, ["town"])], remainder="passthrough"
    )
    model = make_pipeline(encoder, LogisticRegression()).fit(train.drop(columns="ill"), train.ill)
    declared = pd.CategoricalDtype(["cold", "flu", SECRET])
    train["diagnosis"], holdout["diagnosis"] = (table.diagnosis.astype(declared) for table in (train, holdout))
    settings = Settings(
        n_shadows=0, n_influence=0, attributes=("diagnosis", "town"), rule=ReleaseRule(dtp=None, advantage=0.3)
    )
    result = audit(model, train=train, holdout=holdout, target="ill", settings=settings)
    assert [column.name for column in result.attributes] == ["town"]
    (lost,) = of(result, "“diagnosis”")
    assert lost.verdict is Verdict.CANNOT_TELL
    assert "raised ValueError" in lost.reason
    assert SECRET not in lost.reason
    assert any(note.startswith("The sensitive attribute “diagnosis” was not inferred") for note in result.notes)
    again = apply(Document.of("x", [result]), Limits(advantage=0.5))
    assert [one.verdict for one in again.audits[0].findings if "“diagnosis”" in one.measure] == [Verdict.CANNOT_TELL]
    # Neither a limit that the audit did not have nor a finding that was taken out makes up for it.
    unjudged = replace(
        result,
        rule=ReleaseRule(advantage=None),
        findings=tuple(one for one in result.findings if "“diagnosis”" not in one.measure),
    )
    for document in (Document.of("x", [unjudged]), Document.of("x", [replace(unjudged, rule=result.rule)])):
        assert apply(document, Limits(dtp=None, advantage=0.5)).verdict is Verdict.CANNOT_TELL


def test_a_property_that_no_game_can_be_played_about_does_not_end_the_audit():
    def sometimes(records, seed):
        if seed % 5 == 0:
            raise ValueError(SECRET)
        return noisy(records, seed)

    rng = np.random.default_rng(0)
    X, y = np.column_stack([np.arange(800) % 2, rng.normal(size=800)]), rng.integers(0, 2, 800)
    settings = Settings(
        seed=1,
        n_shadows=0,
        n_influence=0,
        properties=(TargetProperty("x0", values=(1,), fractions=(0.3, 0.6)),),
        games=PropertyGames(poisoned=(), n_shadow=20, n_targets=5, n_records=100),
        rule=ReleaseRule(dtp=None, property=0.8),
    )
    learner = FunctionLearner(sometimes)
    result = audit(learner, train=(X[:400], y[:400]), holdout=(X[400:], y[400:]), settings=settings)
    (lost,) = of(result, "frequency")
    assert lost.verdict is Verdict.CANNOT_TELL
    assert "raised ValueError" in lost.reason
    assert result.properties == ()
    assert SECRET not in dump(Document.of("x", [result]))
    assert result.method["properties"] == ["x0 is 1"]


class OfCodes(LogisticRegression):
    """As XGBoost, it takes no labels but whole numbers from 0 on."""

    __module__ = "xgboost.sklearn"

    def fit(self, X: np.ndarray, y: np.ndarray) -> OfCodes:
        if not np.array_equal(np.unique(y), [0, 1]):
            raise ValueError(f"invalid classes {y}")
        return super().fit(X, y)


@pytest.mark.parametrize("classes", [("no", "yes"), (1, 2)])
def test_learners_that_take_codes_alone_say_so(classes: tuple) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    labels = np.array(classes)[np.arange(40) % 2]
    with pytest.raises(ModelError, match="raised ValueError in fit on 40 records; it takes classes as whole numbers"):
        SklearnLearner(OfCodes()).fit(Records.from_arrays(X, labels), seed=0)
    SklearnLearner(OfCodes()).fit(Records.from_arrays(X, np.arange(40) % 2), seed=0)


class ChangesItsSettings(GaussianNB):
    """Keeps another object than it is given, as CatBoost does with ``cat_features``: it cannot be cloned."""

    def __init__(self, columns=None, priors=None, var_smoothing=1e-9):
        super().__init__(priors=priors, var_smoothing=var_smoothing)
        self.columns = list(columns or ())


@pytest.mark.parametrize("fitted", [True, False])
def test_an_estimator_that_cannot_be_cloned_says_so_and_what_to_do(fitted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.arange(80) % 2
    model = ChangesItsSettings([0])
    model = model.fit(X[:40], y[:40]) if fitted else model
    sets = {"train": (X[:40], y[:40]), "holdout": (X[40:], y[40:])}
    with pytest.raises(
        UserCodeError, match=r"raised RuntimeError in sklearn.base.clone, .* a FunctionLearner"
    ) as caught:
        audit(model, **sets)
    assert "predict_proba" not in str(caught.value)


def test_what_is_told_to_do_about_it_works():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.arange(80) % 2
    sets = {"train": (X[:40], y[:40]), "holdout": (X[40:], y[40:])}
    model = ChangesItsSettings([0]).fit(X[:40], y[:40])

    def train(records, seed):
        schema = records.schema
        made = ChangesItsSettings([0]).fit(schema.decode(records.features), schema.decode_labels(records.labels))
        return wrap(made, schema)

    found = audit(model, **sets, learner=FunctionLearner(train, randomised=False), settings=FEW)
    assert found.influence.n_measured > 0
    assert audit(model.predict_proba, **sets, settings=FEW).influence is None
