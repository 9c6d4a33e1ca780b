"""Naive Bayes without each record in turn."""
