# SPDX-License-Identifier: Apache-2.0
"""Proofs that solutions exist, and that there are no others."""
