"""What happens to staff accounts, told to whoever records it.

``staff_changed``: ``request``, ``user``, ``changes`` (field to before and after), ``created``.
``session_ended``: ``request``, ``user``, ``count``, ``why``.
"""

from django.dispatch import Signal

staff_changed = Signal()
session_ended = Signal()
