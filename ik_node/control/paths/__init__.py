"""Straight lines and curves, and their timing."""
