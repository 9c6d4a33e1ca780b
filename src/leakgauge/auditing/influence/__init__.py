"""Influence: how far does a single training record move the model?"""
