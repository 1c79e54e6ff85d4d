"""Finds records by what staff type; see ``find``. ``sqlite`` and ``postgres`` are the indexes of the databases."""
