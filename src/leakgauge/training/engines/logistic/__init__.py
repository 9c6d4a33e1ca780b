"""Logistic regression with a squared penalty, solved to the end: without each record, and on any subsets of a pool."""
