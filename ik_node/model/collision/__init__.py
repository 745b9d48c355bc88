"""Distances between the links of a robot."""
