"""Re-encrypts what is kept long with the current ``SECRET_KEY``, so that the previous one can be removed."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.apps import apps
from django.core.management.base import BaseCommand
from django.db import transaction
from django.db.models import Model, TextField, Value
from django.db.models.functions import Cast

from portal.accounts.encryption import EncryptedField, decrypt, encrypt

SEALED = ("secret", "seed")


class Command(BaseCommand):
    """``manage.py reencrypt``"""

    help = (
        "Re-encrypt second factors and drafts with the current SECRET_KEY. "
        "SECRET_KEY_FALLBACKS must contain the previous one."
    )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        found = Authenticator.objects.select_for_update().exclude(type=Authenticator.Type.WEBAUTHN)
        for one in found:
            one.data |= {name: encrypt(decrypt(one.data[name])) for name in SEALED if name in one.data}
            one.save(update_fields=["data"])
        self.stdout.write(f"Re-encrypted: {len(found)}.")
        for model in apps.get_models():
            for field in model._meta.concrete_fields:
                if isinstance(field, EncryptedField):
                    encrypt_again(model, field.name)


def encrypt_again(model: type[Model], name: str) -> None:
    """Re-encrypt one field of every row, as stored, so that one that can't be decrypted raises and isn't lost."""
    rows = model._base_manager.select_for_update().exclude(**{name: None})
    for pk, stored in rows.annotate(stored=Cast(name, TextField())).values_list("pk", "stored"):
        encrypted = Value(encrypt(decrypt(stored)), TextField())
        model._base_manager.filter(pk=pk).update(**{name: encrypted})
