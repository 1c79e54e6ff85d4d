"""Signals about staff accounts, for recording.

``staff_changed``: ``user``, ``changes`` (field to before and after), ``created``. ``session_ended``: ``request``,
``user``, ``count``, ``why``. ``password_link_requested``: ``request``, ``address``. ``password_link_sent``: ``user``.
"""

from django.dispatch import Signal

staff_changed = Signal()
session_ended = Signal()
password_link_requested = Signal()
password_link_sent = Signal()
