"""Membership inference privacy: noise on what is released, so that nobody can tell who was in the training set.

A pool of n records is fixed. A training set of k of them is drawn at random, an algorithm turns it into a vector (a
statistic, or a model's parameters), and noise is added. What is promised is about accuracy: no attack on any record is
right more often than ``max(k/n, 1 - k/n) + eta``. That is weaker than differential privacy, which bounds what every
single output can tell, and takes far less noise.

Source: Izzo, Yoon, Arik and Zou, "Provable Membership Inference Privacy", 2022. Its sampler and its constant are
mended here; :class:`Paper` has them as printed.
"""

from leakgauge.defences.mip.algorithms import Algorithm, Mean, ModelParameters, Statistic
from leakgauge.defences.mip.calibrations import (
    Calibrated,
    Calibration,
    Guarantee,
    GuaranteeWarning,
    NoGuarantee,
    Paper,
    Swap,
    Tight,
    TightGaussian,
    moments_of_splits,
)
from leakgauge.defences.mip.exchanges import all_subsets, enumerated
from leakgauge.defences.mip.noise import GaussianNoise, Noise, NormNoise, Radius
from leakgauge.defences.mip.release import Release, calibrate, release
from leakgauge.defences.mip.synthetic import GaussianGenerator, linear_gaussian, second_moments

__all__ = [
    "Algorithm",
    "Calibrated",
    "Calibration",
    "GaussianGenerator",
    "GaussianNoise",
    "Guarantee",
    "GuaranteeWarning",
    "Mean",
    "ModelParameters",
    "NoGuarantee",
    "Noise",
    "NormNoise",
    "Paper",
    "Radius",
    "Release",
    "Statistic",
    "Swap",
    "Tight",
    "TightGaussian",
    "all_subsets",
    "calibrate",
    "enumerated",
    "linear_gaussian",
    "moments_of_splits",
    "release",
    "second_moments",
]
