"""Naive Bayes of categories on any subsets of a pool: records are encoded once, and each model is a table of counts.

scikit-learn checks and encodes the records of each model, and all queries, again and again. Here both are codes of as
few bytes as hold them. All that is computed from the counts is computed as scikit-learn does it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.models import AnswerKind
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.naive_bayes.engines import (
    alpha_of,
    bad_alpha,
    fewest_categories,
    given_prior,
    why_bad_prior,
)
from leakgauge.training.engines.refit import train_each
from leakgauge.training.engines.stateless import Given, given_whole
from leakgauge.training.job import Job
from leakgauge.training.table import EachModel
from leakgauge.training.threads import one_thread

BLOCK_ROWS = 2**14
"""Queries answered at once: few enough for the sums of all classes to stay in the processor's cache."""


class CategoricalNaiveBayesSubsets(Engine):
    """``CategoricalNB`` on any subsets, where ``min_categories`` says how many categories there are."""

    name = "naive-bayes-subsets"
    method = "counting categories of records that are encoded once"
    tolerance: ClassVar[float] = 1e-12
    trains = True
    chunk = 16
    spreads = True

    def prepare(self, job: Job) -> Counting | Refusal:
        """Another learner, codes that are none, and numbers of categories that depend on the subset are refused."""
        from sklearn.naive_bayes import CategoricalNB

        case = given_whole(job, (CategoricalNB,))
        if isinstance(case, Refusal):
            return case
        alpha, fewest = alpha_of(case), fewest_categories(case)
        if isinstance(fewest, str):
            return Refusal(RefusalKind.SETTING, fewest)
        reason = why_bad_prior(case)
        if reason or not isinstance(alpha, float):
            return Refusal(RefusalKind.SETTING, reason or bad_alpha(case))
        if alpha == 0:
            return Refusal(RefusalKind.SETTING, "CategoricalNB(alpha=0) may give no numbers")
        if not case.counts.all():
            return Refusal(RefusalKind.DATA, "there is a class without records")
        parts = [case.matrix] if isinstance(job.queries, EachModel) else [case.matrix, case.queries]
        if any((part < 0).any() for part in parts):
            return Refusal(RefusalKind.DATA, "CategoricalNB takes no negative codes")
        if any((np.floor(part) >= fewest).any() for part in parts):
            words = "the number of categories depends on who is in the training set; set min_categories"
            return Refusal(RefusalKind.SETTING, words)
        return Counting(self, job, case, alpha, fewest)


class Counting(PreparedJob):
    """A job whose records and queries are encoded.

    Args:
        engine: what does it.
        job: the whole job.
        case: as the last step of the learner sees it.
        alpha: the smoothing, above 0.
        n_categories: of each feature ``[d]``.
    """

    def __init__(self, engine: Engine, job: Job, case: Given, alpha: float, n_categories: Indices) -> None:
        super().__init__(engine, job)
        self.alpha, self.n_categories = alpha, n_categories
        self.fit_prior, self.prior = bool(case.estimator.fit_prior), given_prior(case)
        self.labels, self.n_classes = case.labels, len(case.classes)
        self.codes = _codes(case.matrix, n_categories)
        same = isinstance(job.queries, EachModel) or job.queries is job.records.features
        self.asked = self.codes if same else _codes(case.queries, n_categories)

    def answers(self, models: Indices) -> JobOutcome:
        """The answers; models whose training set lacks a class of the pool are trained."""
        job = self.job.part(models)
        table = np.empty((len(models), job.n_queries, self.n_classes))
        lost = []
        with np.errstate(all="ignore"), one_thread():
            for model in range(len(models)):
                rows = np.flatnonzero(job.subsets.row(model))
                sizes = np.bincount(self.labels[rows], minlength=self.n_classes)
                if not sizes.all():
                    lost.append(model)
                    continue
                asked = self.asked
                if isinstance(job.queries, EachModel):
                    asked = [column[job.queries.index[model]] for column in self.codes]
                self._answer(table[model], asked, self._tables(rows), self._log_prior(sizes))
        found = JobOutcome(table, AnswerKind.PROBABILITIES)
        return found.with_others(np.array(lost), train_each(job, np.array(lost))) if lost else found

    def _tables(self, rows: Indices) -> list[Floats]:
        """For each feature the log-probability of each category in each class ``[classes, categories]``."""
        labels, tables = self.labels[rows], []
        for codes, n in zip(self.codes, self.n_categories.tolist(), strict=True):
            counted = np.bincount(labels * n + codes[rows], minlength=self.n_classes * n)
            smoothed = counted.reshape(self.n_classes, n) + self.alpha
            tables.append(np.log(smoothed) - np.log(smoothed.sum(axis=1).reshape(-1, 1)))
        return tables

    def _log_prior(self, sizes: Indices) -> Floats:
        if self.prior is not None:
            return np.asarray(np.log(self.prior))
        if self.fit_prior:
            counts = sizes.astype(np.float64)
            return np.asarray(np.log(counts) - np.log(counts.sum()))
        return np.full(self.n_classes, -np.log(self.n_classes))

    def _answer(self, answers: Floats, asked: list[NDArray[Any]], tables: list[Floats], prior: Floats) -> None:
        """Put a model's log-probabilities ``[queries, classes]`` into its part of the table."""
        for start in range(0, len(answers), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            joint = np.zeros((self.n_classes, len(answers[part])))
            for codes, table in zip(asked, tables, strict=True):
                joint += table[:, codes[part]]
            joint += prior[:, None]
            answers[part] = np.minimum(joint - _log_sum(joint), 0.0).T


def _codes(matrix: Floats, n_categories: Indices) -> list[NDArray[Any]]:
    """Each column in the smallest type that holds its codes; cut off, not rounded, as scikit-learn does."""
    return [column.astype(np.min_scalar_type(n)) for column, n in zip(matrix.T, n_categories.tolist(), strict=True)]


def _log_sum(logs: Floats) -> Floats:
    """The logarithm of the sum of exponentials over the first axis, the largest of them apart as in scikit-learn."""
    largest = logs.max(axis=0)
    at_most = logs == largest
    n_largest = at_most.sum(axis=0, dtype=np.float64)
    rest = np.where(at_most, 0.0, np.exp(logs - largest)).sum(axis=0)
    return np.asarray(np.log1p(rest / n_largest) + np.log(n_largest) + largest)
