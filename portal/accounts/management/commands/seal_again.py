"""Re-encrypts second factors with the current ``SECRET_KEY``, so that the previous one can be removed."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand
from django.db import transaction

from portal.accounts.encryption import decrypt, encrypt

SEALED = ("secret", "seed")


class Command(BaseCommand):
    """``manage.py seal_again``"""

    help = "Re-encrypt second factors with the current SECRET_KEY. SECRET_KEY_FALLBACKS must contain the previous one."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        found = Authenticator.objects.select_for_update().exclude(type=Authenticator.Type.WEBAUTHN)
        for one in found:
            one.data |= {name: encrypt(decrypt(one.data[name])) for name in SEALED if name in one.data}
            one.save(update_fields=["data"])
        self.stdout.write(f"Re-encrypted: {len(found)}.")
