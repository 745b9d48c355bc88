# SPDX-License-Identifier: Apache-2.0
"""Compiling of kernels, their cache, and taking over compiled ones at run time: no mathematics."""
