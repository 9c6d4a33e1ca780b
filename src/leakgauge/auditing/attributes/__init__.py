"""Attribute inference: can a sensitive attribute of a known person be read off the model?"""
