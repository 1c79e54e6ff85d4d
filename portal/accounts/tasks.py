"""Background jobs for accounts."""

from portal.accounts.outbox import send_mail
from portal.accounts.password_links import send_requested_links

__all__ = ["send_mail", "send_requested_links"]
