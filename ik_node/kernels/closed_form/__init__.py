"""Solutions by formula."""
