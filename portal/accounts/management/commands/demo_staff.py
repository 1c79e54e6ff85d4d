"""Creates one demo account for each role; only where DEBUG is on."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.accounts.models import User
from portal.accounts.roles import Role

NAMES = {
    Role.VIEWER: ("Priya", "Raman"),
    Role.SERVICER: ("Marcus", "Bell"),
    Role.SUPERVISOR: ("Elena", "Ortiz"),
    Role.AUDITOR: ("Grace", "Kim"),
    Role.ADMIN: ("Tom", "Nguyen"),
}


class Command(BaseCommand):
    """``manage.py demo_staff``"""

    help = "Create the demo staff viewer, servicer, supervisor, auditor and admin (DEBUG only)."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError("Demo staff are for local use and need DEBUG.")
        for role in Role:
            if not User.objects.filter(username=role.value).exists():
                first, last = NAMES[role]
                User.objects.create_user(
                    role.value, password=settings.DEMO_PASSWORD, role=role, first_name=first, last_name=last
                )
        self.stdout.write("Demo staff: " + ", ".join(Role.values))
