"""The panel beside the scene."""
