# SPDX-License-Identifier: Apache-2.0
"""Tables of goals: many rows, on all cores, or on a Dask cluster."""
