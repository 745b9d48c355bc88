"""Curves for goals to travel along."""
