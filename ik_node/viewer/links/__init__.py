"""Changing the lengths of links."""
