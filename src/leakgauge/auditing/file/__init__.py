"""File: what does the model file itself hold about the training records, where the file is handed over?"""
