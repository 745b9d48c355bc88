"""Local methods, one file each."""
