"""Audit entries as sentences that a person reads without knowing the code."""

from collections.abc import Sequence

from portal.audit.models import Entry

_DONE = {
    "borrowers.create_commercial": "created borrower",
    "borrowers.update": "changed the profile of",
    "borrowers.update_key_person": "changed key person",
    "borrowers.no_change": "changed nothing of",
    "applications.submit": "sent",
    "applications.open": "opened by its identifier",
    "applications.detail": "opened",
    "applications.prefer": "changed the preferred offer of",
    "applications.follow": "asked what became of",
    "applications.export": "exported applications:",
    "applications.export_offers": "exported the offers of",
    "lookup.record": "opened the registry entry of",
    "lookup.add": "added",
    "lookup.correct": "corrected the registry entry of",
    "lookup.archive": "archived",
    "lookup.restore": "restored",
    "lookup.upload": "uploaded for import",
    "lookup.import_records": "imported",
    "operations.forget_old": "deleted what is kept no longer",
    "operations.backup": "copied the whole database into",
    "operations.restore": "replaced the whole database by",
    "lookup.refresh_portfolio": "read the whole portfolio again",
    "operations.cancel": "cancelled the background work:",
    "operations.support_bundle": "downloaded",
    "notes.add": "wrote a note on",
    "notes.unpin": "unpinned a note:",
    "notes.add_follow_up": "planned a follow-up on",
    "notes.finish": "finished a follow-up:",
    "saved_views.save": "saved the view",
    "saved_views.delete": "deleted the view",
    "accounts.sign_in": "signed in",
    "accounts.sign_in_failed": "failed to sign in as",
    "accounts.sign_out": "signed out",
    "accounts.refused": "was not allowed to",
    "accounts.keep_number": "said that nine digits are neither an SSN nor an EIN",
    "accounts.profile": "changed their preferences",
    "accounts.staff_created": "created the account",
    "accounts.staff_deleted": "deleted the account",
    "accounts.staff_changed": "changed the account",
    "accounts.session_ended": "ended sessions of",
    "accounts.password_changed": "changed the password of",
    "accounts.single_sign_on_connected": "connected single sign-on to",
    "accounts.single_sign_on_changed": "changed the single sign-on of",
    "accounts.single_sign_on_removed": "disconnected single sign-on from",
    "accounts.second_factor_added": "added a second factor to",
    "accounts.second_factor_changed": "changed a second factor of",
    "accounts.second_factor_removed": "removed a second factor of",
    "approvals.detail": "opened the change to be approved:",
    "approvals.ask": "asked for approval:",
    "approvals.approve": "approved:",
    "approvals.refuse": "refused:",
    "approvals.withdraw": "withdrew:",
    "approvals.expire": "let expire:",
    "approvals.send": "sent as approved:",
    "borrowers.detail": "opened borrower",
    "borrowers.edit": "opened the form to change",
    "borrowers.export": "exported borrowers:",
    "loans.detail": "opened",
    "loans.schedule": "exported the schedule of",
    "loans.export": "exported loans:",
    "lookup.export": "exported the refused lines of",
    "loans.refresh": "read again",
    "credit_lines.detail": "opened",
    "credit_lines.pdf": "opened",
    "credit_lines.download": "downloaded",
    "credit_lines.export": "exported lines of credit:",
    "credit_lines.refresh": "read again",
    "repayments.detail": "opened",
    "messaging.detail": "opened",
    "messaging.download": "downloaded message",
    "messaging.export": "exported messages:",
    "messaging.sync": "read the messages that were missing",
    "messaging.link": "said who has",
    "summaries.borrower": "opened the summary of",
    "summaries.preview": "opened",
    "summaries.print": "printed",
    "summaries.verify": "compared a file with document",
    "summaries.batch": "began to print",
    "summaries.download": "fetched",
    "home.snooze": "put aside:",
    "home.wake": "brought back:",
    "repayments.export": "exported repayments:",
    "audit.resolve": "settled the unknown outcome of",
    "audit.export": "exported the audit trail as",
    "audit.verify": "checked the whole audit trail",
    "audit.checkpoint": "signed the audit trail",
    "audit.accept": "accepted that the audit trail is another one than was signed",
}
# Looks at pages, by the end of their action.
_SEEN = {"index": "looked through", "view": "opened", "suggest": "was shown"}
_TRIED = {
    "borrowers.create_commercial": "set out to create borrower",
    "borrowers.update": "set out to change the profile of",
    "borrowers.update_key_person": "set out to change key person",
    "applications.submit": "set out to send",
}
# What a role may let somebody do, as the end of "was not allowed to".
ACT_WORDS = {
    "home.index": "open the first page",
    "home.snooze": "put lines of the first page aside",
    "borrowers.index": "open the list of borrowers",
    "borrowers.create": "create borrowers",
    "borrowers.edit": "change profiles",
    "applications.index": "open the list of applications",
    "applications.detail": "open applications",
    "applications.submit": "send applications",
    "applications.open": "open applications by their identifier",
    "applications.prefer": "prefer an offer",
    "loans.index": "open the list of loans",
    "loans.detail": "open loans",
    "credit_lines.index": "open the list of lines of credit",
    "credit_lines.detail": "open lines of credit",
    "credit_lines.pdf": "open statements",
    "repayments.index": "open the list of repayments",
    "repayments.detail": "open repayments",
    "messaging.index": "open messages",
    "messaging.sync": "read the missing messages",
    "messaging.link": "say whose bank account it is",
    "notes.add": "write notes and follow-ups",
    "approvals.index": "open approvals",
    "approvals.decide": "approve or refuse changes",
    "approvals.withdraw": "withdraw changes",
    "saved_views.save": "save views",
    "lookup.search": "search",
    "lookup.add": "add records to the registry",
    "lookup.correct": "correct the registry",
    "lookup.archive": "archive records",
    "lookup.refresh_portfolio": "read the whole portfolio again",
    "lookup.import_records": "import records",
    "audit.index": "open the audit trail",
    "audit.detail": "open entries of the audit trail",
    "audit.export": "export the audit trail",
    "audit.history": "open the history of records",
    "audit.write": "open the record of a write",
    "audit.resolve": "settle unknown outcomes",
    "operations.status": "open the integration status",
    "operations.job": "open background work",
    "operations.cancel": "cancel background work",
    "operations.support_bundle": "download the support bundle",
    "summaries.borrower": "open summaries",
    "summaries.document": "open documents",
    "summaries.verify": "compare a file with its document",
    "summaries.batch": "print many summaries at once",
    "accounts.profile": "open their own settings",
    "accounts.staff": "manage accounts",
}
# Acts whose sentence names the fields that changed.
_OF_FIELDS = {"borrowers.update", "borrowers.update_key_person", "accounts.staff_changed", "lookup.correct"}
_FIELDS = {
    "first_name": "name",
    "email": "e-mail",
    "dob": "date of birth",
    "ssn": "SSN",
    "credit_report_gzip": "credit report",
    "asset_report_gzip": "asset report",
    "borrower_uuid": "borrower",
}
_NAMED = 3
_ENDED = {
    "confirmed": "",
    "rejected": "the service refused",
    "not_sent": "nothing was sent",
    "unknown": "the outcome is unknown",
}


def sentence(entry: Entry, fields: Sequence[str] = ()) -> str:
    """What happened, without the actor's name: "changed phone and e-mail of Northwind LLC"."""
    is_done = entry.phase == Entry.Phase.EVENT or entry.result == "confirmed"
    if fields and entry.action in _OF_FIELDS:
        verb = f"{'changed' if is_done else 'set out to change'} {_listed(fields)} of"
    else:
        seen = _SEEN.get(entry.action.rpartition(".")[2], entry.action)
        verb = (_DONE if is_done else _TRIED).get(entry.action, seen)
    subject = entry.subject_label
    if entry.action == "accounts.refused":
        subject = ACT_WORDS.get(subject, subject)
    text = f"{verb} {subject}".strip()
    ending = _ENDED.get(entry.result, entry.result) if entry.phase == Entry.Phase.OUTCOME else ""
    return f"{text}: {ending}" if ending else text


def field_words(name: str) -> str:
    """A field as people call it."""
    return _FIELDS.get(name, name.replace("_", " "))


def _listed(fields: Sequence[str]) -> str:
    words = [field_words(name) for name in fields[:_NAMED]]
    if len(fields) > _NAMED:
        words[-1] = f"{len(fields) - _NAMED + 1} more fields"
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
