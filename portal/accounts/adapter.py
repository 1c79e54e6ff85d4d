"""How sign-in behaves here: nobody registers themselves."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class StaffAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Accounts are made by an administrator."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never: staff accounts come from the admin or ``createsuperuser``."""
        return False
