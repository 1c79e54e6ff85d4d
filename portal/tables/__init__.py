"""Lists of records: columns, filters, sorting, saved views, exports, and refreshing selected rows.

A list is a :class:`~portal.tables.pages.ListPage`, declared in the area of its records.
"""
