import sys

import numpy as np
import pytest

from leakgauge.errors import MissingExtra
from leakgauge.records import Records
from leakgauge.reproduce import sentiment
from leakgauge.reproduce.sentiment import MOST_CHARACTERS, negative_sentiment

TEXTS = {
    "a": "the meeting is at ten",
    "b": "Today SUX!",
    "c": "Not bad at all",
    "d": "VADER is smart, handsome, and funny.",
    "e": "this is a horrible book",
}


def records(ids):
    return Records.from_arrays(np.arange(float(len(ids)))[:, None], [0, 1] * (len(ids) // 2), ids=ids)


def test_messages_without_sentiment_are_not_negative():
    plain = dict.fromkeys(TEXTS, "the meeting is at ten") | {"f": ""}
    assert not negative_sentiment(plain).of(records(list(plain))).any()


def test_negative_messages_are_found_by_the_ids_of_their_records():
    """Examples of VADER's own description: -0.5461 for b, 0.431 for c, 0.8316 for d."""
    secret = negative_sentiment(TEXTS)
    assert secret.of(records(["a", "b", "c", "d"])).tolist() == [False, True, False, False]
    assert secret.of(records(["e", "d"])).tolist() == [True, False]


def test_only_the_beginning_is_read():
    long = {"a": "x " * (MOST_CHARACTERS // 2) + "horrible", "b": "x " * (MOST_CHARACTERS // 2 - 5) + "horrible"}
    assert negative_sentiment(long).of(records(["a", "b"])).tolist() == [False, True]


def test_each_message_is_scored_once(monkeypatch):
    scored = []

    class Analyser:
        def polarity_scores(self, text):
            scored.append(text)
            return {"compound": -0.05}

    monkeypatch.setattr(sentiment, "_analyser", Analyser)
    secret = negative_sentiment(TEXTS)
    for _ in range(2):
        assert secret.of(records(["a", "b"])).all()  # the largest score that is called negative
    assert scored == list(TEXTS.values())


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "vaderSentiment.vaderSentiment", None)
    with pytest.raises(MissingExtra, match=r"pip install 'leakgauge\[sentiment\]'"):
        negative_sentiment(TEXTS)
