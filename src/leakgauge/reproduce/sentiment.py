"""Messages of negative sentiment, by VADER (Hutto and Gilbert 2014), the sentiment tool of nltk.

It adds up what the words of a lexicon mean, with rules for negation and emphasis, to a number from -1 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leakgauge.errors import MissingExtra
from leakgauge.properties import Property

NEGATIVE = -0.05
"""Compound score up to which VADER's authors call a text negative."""

MOST_CHARACTERS = 2000
"""Beginning of a message that is read: the time that VADER takes grows with the square of the length."""


def negative_sentiment(texts: Mapping[Any, str]) -> Property:
    """The property of records of having a message of negative sentiment; each message is scored once.

    Args:
        texts: from the ids of records to their messages.

    Returns:
        A property of any records with such ids; it is not a column of theirs.

    Raises:
        MissingExtra: vaderSentiment is not installed.
    """
    analyser = _analyser()
    negative = [
        name for name, text in texts.items() if analyser.polarity_scores(text[:MOST_CHARACTERS])["compound"] <= NEGATIVE
    ]
    return Property("negative sentiment", lambda records: np.isin(records.ids, negative))


def _analyser() -> Any:
    try:
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
    except ImportError:
        raise MissingExtra(
            "the sentiment of messages is computed by VADER, which is not installed; install it with: pip install "
            "'leakgauge[sentiment]'"
        ) from None
    return SentimentIntensityAnalyzer()
