"""Explain: where in an image a model finds its evidence."""
