# SPDX-License-Identifier: Apache-2.0
"""The folder Teach of the page: programs of taught points."""
