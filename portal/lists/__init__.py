"""Lists of records: columns, filters, sorts, saved views, exports, and refreshing what was chosen.

A list is a :class:`~portal.lists.pages.ListPage`, declared in the area of its records.
"""
