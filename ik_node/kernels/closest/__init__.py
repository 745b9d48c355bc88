"""Closest configurations for goals that cannot be met."""
