"""A small database of each release, which ``test_copies.py`` upgrades to the current version."""
