"""Searches over many goals or many starts."""
