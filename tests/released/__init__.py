"""A small database of each release since 1.0.0, which ``test_copies.py`` upgrades to the current version."""
