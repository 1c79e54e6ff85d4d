"""Links by email to set a first password or to replace a forgotten one.

Hides who has an account: a request for a link does the same work for every address, and a worker looks up accounts
later. A link works once, for a day, and only while the person's password, email and last sign-in stay as they were.
"""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from portal.accounts import outbox
from portal.accounts.encryption import decrypt, encrypt
from portal.accounts.models import OutgoingMail, User
from portal.accounts.signals import password_link_requested, password_link_sent
from portal.jobs.execution import Progress
from portal.jobs.kinds import job
from portal.jobs.queue import start_job

LINK_HOURS = settings.PASSWORD_RESET_TIMEOUT // 3600
PAUSE_SECONDS = 600
"""Within this time a person gets only one link, however often it is requested."""


link_tokens = PasswordResetTokenGenerator()


def are_enabled() -> bool:
    """Whether mail can be sent and no single sign-on is set up."""
    return bool(settings.HAS_MAIL and not settings.OIDC_URL)


def request_link(request: HttpRequest, address: str) -> None:
    """Request a link for the accounts with this email address, if there are any."""
    with transaction.atomic():
        password_link_requested.send(sender=User, request=request, address=address)
        start_job(send_requested_links, sealed=encrypt(address))


@job("accounts.send_password_links", label="Send password links")
def send_requested_links(progress: Progress, sealed: str) -> None:
    """Send a link to each active account with this address that may use a password."""
    period = int(timezone.now().timestamp()) // PAUSE_SECONDS
    recent = OutgoingMail.objects.filter(created_at__gte=timezone.now() - timedelta(seconds=PAUSE_SECONDS))
    for person in User.objects.filter(email__iexact=decrypt(sealed), is_active=True):
        key = f"password:{person.pk}:"
        if person.has_usable_password() and not recent.filter(key__startswith=key).exists():
            send_link(person, f"{key}{period}")  # The key lets only one of two workers send it.


def send_link_for_admin(person: User) -> bool:
    """Send a link on behalf of an administrator. False if the account can't have one."""
    return bool(person.is_active and person.email) and send_link(
        person, f"set-up:{person.pk}:{timezone.now():%Y%m%d%H%M%S%f}"
    )


def send_link(person: User, key: str) -> bool:
    """Queue and record the message. False if there is one with this key."""
    address = reverse("account_choose_password", args=[person.pk, link_tokens.make_token(person)])
    if person.has_usable_password():
        subject = "Choose a new password"
        why = "Use this link to choose a new password. If you didn’t ask to reset your password, ignore this message."
    else:
        subject, why = "Set your password", "Use this link to set your password."
    text = (
        f"Your sign-in name is {person.username}. {why}\n\n{settings.PORTAL_URL}{address}\n\n"
        f"The link works once, for {LINK_HOURS} hours.\n"
    )
    with transaction.atomic():
        is_new = outbox.queue_mail(key, person.email, f"{settings.PRODUCT_NAME}: {subject}", text)
        if is_new:
            password_link_sent.send(sender=User, user=person)
    return is_new


def find_person(pk: int, token: str) -> User | None:
    """The active account that a link belongs to, if it still works."""
    person = User.objects.filter(pk=pk, is_active=True).first()
    return person if link_tokens.check_token(person, token) else None


def use_link(pk: int, token: str, password: str) -> bool:
    """Change the password. False if the link was used in the meantime."""
    with transaction.atomic():
        User.objects.select_for_update().filter(pk=pk).first()
        person = find_person(pk, token)
        if person:
            person.set_password(password)
            person.save(update_fields=["password"])
    return person is not None
