"""What happens to staff accounts, told to whoever records it.

``staff_changed``: ``request``, ``user``, ``changes`` (field to before and after), ``created``.
``profile_changed``: ``request``, ``user``, ``changes``, by the person themselves.
``session_ended``: ``request``, ``user``, ``count``, ``why``.
"""

from django.dispatch import Signal

staff_changed = Signal()
profile_changed = Signal()
session_ended = Signal()
