# SPDX-License-Identifier: Apache-2.0
"""How each solver of the table is called. These modules run in the solver's own environment."""
