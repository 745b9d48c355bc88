"""Tracks: curves along which goals move."""
