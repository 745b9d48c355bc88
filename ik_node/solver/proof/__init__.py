"""Proofs that solutions exist, and that there are no others."""
