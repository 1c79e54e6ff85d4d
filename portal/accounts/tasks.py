"""What accounts do in the background."""

from portal.accounts.outbox import send_mail

__all__ = ["send_mail"]
