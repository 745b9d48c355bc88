"""Several tools on shared joints."""
