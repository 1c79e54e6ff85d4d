"""The contact log of a borrower or an account: people to contact, what was said, what was promised."""

from typing import Any

from django.db.models import F, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.chain import append, entry_subject
from portal.audit.models import Actor
from portal.collections.forms import ContactForm, Person
from portal.collections.models import AccountOwner, Contact, Promise
from portal.collections.promises import decide_promises, decisions_of, ensure_decided, lock_accounts
from portal.core.business_date import business_date
from portal.notes.views import plan_follow_up
from portal.records.figures import ACCOUNTS
from portal.records.models import LISTED, Account, Borrower, KeyPerson, Kind
from portal.ui import wording
from servicing.promises import Decision

MAX_SHOWN = 30
SUBJECTS = (Kind.BORROWER, *ACCOUNTS)


def contact_log(record: Account | Borrower, user: User) -> dict[str, Any]:
    """The newest contacts about a borrower or an account, and their total number.

    Each comes with links to the payments for its promise, and whether this person may undo it.
    """
    ensure_decided()
    found = _contacts(record)
    newest = list(found.select_related("promise")[:MAX_SHOWN])
    decided = decisions_of({one.account_uuid for one in newest if hasattr(one, "promise")})
    payments = {promise.contact_id: payment_links(decision) for promise, decision in decided.items()}
    owner = AccountOwner.objects.filter(account_uuid=record.uuid).select_related("owner").first()
    entries = [(one, payments.get(one.pk, []), may_undo(one, user)) for one in newest]
    return {"owner": owner, "entries": entries, "total": found.count()}


def payment_links(decision: Decision) -> list[tuple[str, str]]:
    """Words and address of the repayments that decide a promise or leave it open, and of those returned."""
    found = (
        (decision.counted, "paid"),
        (decision.scheduled, "scheduled"),
        (decision.returned, "returned"),
        (decision.unclear, "with an unknown status"),
    )
    return [
        (
            f"{wording.money(one.amount) or 'An unknown amount'} {words} {wording.day(one.effective_date)}",
            reverse("repayments:detail", args=[one.uuid]),
        )
        for repayments, words in found
        for one in repayments
    ]


def contact_form(record: Account | Borrower, data: Any = None) -> ContactForm:
    """The form to log a contact. Build it again under a lock before saving."""
    newest = _contacts(record).first()
    news = ""
    if newest:
        news = f"{newest.author_name} logged “{newest.get_outcome_display()}” {wording.ago(newest.at)}."
    borrower = Borrower.objects.filter(uuid=record.borrower_uuid).first()
    accounts = Account.objects.filter(kind__in=ACCOUNTS, borrower_uuid=record.uuid, archived_at__isnull=True)
    return ContactForm(
        data,
        people=people_of(borrower) if borrower else [],
        borrower=borrower,
        accounts=accounts.order_by(F("past_due_rank").desc(nulls_last=True), "pk")
        if record.kind == Kind.BORROWER
        else (),
        subject=record,
        news=news,
        newest=newest.pk if newest else 0,
    )


def people_of(borrower: Borrower) -> list[Person]:
    people = KeyPerson.objects.filter(LISTED, borrower_uuid=borrower.uuid).order_by("pk")
    everyone: list[Borrower | KeyPerson] = [*people, borrower]
    return list(dict.fromkeys(_person(one) for one in everyone if one.label))


def _person(record: Borrower | KeyPerson) -> Person:
    title = wording.human(record.title) if isinstance(record, KeyPerson) else ""
    return Person(", ".join(filter(None, [record.name, title])), wording.phone(record.phone))


def save_contact(actor: Actor, record: Account | Borrower, form: ContactForm) -> None:
    """Save a contact, its promise and its follow-up, each with its own audit entry."""
    found, account = form.cleaned_data, form.chosen_account
    contact = Contact.objects.create(
        borrower_uuid=record.borrower_uuid,
        account_kind=account.kind if account else "",
        account_uuid=account.uuid if account else "",
        **{name: found[name] for name in ("person", "channel", "outcome", "note", "next_action", "next_on")},
        author_id=actor.id or 0,
        author_name=actor.name,
        day=business_date(),
    )
    subject = account or record
    detail = {"outcome": contact.outcome, "channel": contact.channel}
    append(actor, "collections.log", detail=detail, **entry_subject(subject, label_of(subject)))
    if form.promised and account:
        amount, day = form.promised
        Promise.objects.create(
            contact=contact,
            account_uuid=account.uuid,
            amount=amount,
            day=day,
            logged_on=contact.day,
            logged_at=timezone.now(),
        )
        detail = {"amount": f"{amount:.2f}", "day": day.isoformat()}
        decide_promises([account.uuid])
        append(actor, "collections.promise", detail=detail, **entry_subject(account, label_of(account)))
    if contact.next_action and contact.next_on and form.borrower:
        plan_follow_up(
            actor, form.borrower, title=contact.next_action, due=contact.next_on, owner=found["colleague"]
        )


def may_undo(contact: Contact, user: User) -> bool:
    """Whether this person logged the contact today, and so may still undo it."""
    return contact.author_id == user.pk and contact.day == business_date()


def undo_contact(actor: Actor, contact: Contact, subject: Account | Borrower) -> None:
    """Delete a contact that was logged by mistake, with its promise. A follow-up planned with it stays."""
    accounts = lock_accounts([contact.account_uuid])
    found, _ = Contact.objects.filter(pk=contact.pk).delete()
    if found:
        decide_promises(accounts)
        detail = {"outcome": contact.outcome, "channel": contact.channel}
        append(actor, "collections.undo", detail=detail, **entry_subject(subject, label_of(subject)))


def label_of(record: Account | Borrower) -> str:
    """A record's name in the audit trail."""
    return str(record) if record.kind == Kind.BORROWER else f"{record.kind} {record.uuid[:8]}"


def _contacts(record: Account | Borrower) -> QuerySet[Contact]:
    """The contacts about a borrower and its accounts; for an account, also those about its borrower as a whole."""
    owner = record.borrower_uuid
    if record.kind != Kind.BORROWER:
        of_all = Q(borrower_uuid=owner, account_uuid="") if owner else Q()
        return Contact.objects.filter(Q(account_uuid=record.uuid) | of_all)
    accounts = Account.objects.filter(borrower_uuid=owner, kind__in=ACCOUNTS)
    return Contact.objects.filter(Q(borrower_uuid=owner) | Q(account_uuid__in=accounts.values("uuid")))
