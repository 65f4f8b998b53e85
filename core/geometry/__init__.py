"""Geometry of features: simplex frames, neural collapse, alignment, maps of the plane."""
