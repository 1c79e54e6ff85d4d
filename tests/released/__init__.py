"""A small database made by each released version, which every later one upgrades (``test_copies.py``)."""
