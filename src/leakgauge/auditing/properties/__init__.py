"""Property inference: can a secret of the training set as a whole be told from the model?"""
