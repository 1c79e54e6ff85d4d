"""Repayments as HTML (``{% load repayments %}``): a table row, the split of a payment, and a payment in a message."""

from typing import Any, cast
from urllib.parse import quote

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

import servicing
from portal.gateway.client import StaffRequest
from portal.messaging.links import LinkedMessage
from portal.messaging.payment_events import messages_of_repayment
from portal.records.models import Account, Borrower, Repayment
from portal.repayments.history import payment_history
from portal.repayments.table import PART_COLUMNS, PARTS, RepaymentRow, RepaymentTable
from portal.ui.templatetags.ui import badge, day, explain_missing, human, money, or_dash, status_badge

register = template.Library()
ROW = """<tr data-row{is_open}>
<th scope="row"><a id="open-{uuid}" href="{url}" hx-get="{beside}" hx-target="#{target}"
hx-push-url="true"{marks}><b>{when}</b></a>{meta}{name}</th>
{account}{borrower}
{amounts}
</tr>
"""
ACCOUNT = '<td class="sd-wide sd-kept">{}{}</td>'
BORROWER = '<td class="sd-borrower"><a href="{}" title="{}">{}</a></td>'
AMOUNTS = '<td class="sd-num"><span class="sd-strong">{}</span>{}</td>{}{}'
STATUS = '<td class="sd-status">{}{}{}</td>'
PART = '<td class="sd-num sd-wide sd-widest">{}</td>'
SPLIT = """<svg class="sd-split" viewBox="0 0 100 6" preserveAspectRatio="none" role="img"
aria-label="Split: {}">{}</svg>"""


@register.simple_tag(takes_context=True)
def repayment_row(
    context: template.RequestContext, row: RepaymentRow, table: RepaymentTable, target: str
) -> SafeString:
    """A row of a table of repayments. Its link opens the repayment beside it, in the region ``target``."""
    one, request = row.repayment, cast(StaffRequest, context.request)
    is_open = table.opened is not None and table.opened.row.repayment.uuid == one.uuid
    was_closed = request.htmx.trigger == f"close-{one.uuid}"
    marks = [' aria-current="true"'] * is_open + [" data-focus"] * was_closed
    owner = row.borrower
    return format_html(
        ROW,
        is_open=SafeString(' class="sd-selected"' if is_open else ""),
        uuid=one.uuid,
        url=row.url,
        beside=f"{table.query}payment={quote(one.uuid)}",
        target=target,
        marks=SafeString("".join(marks)),
        when=day(one.effective_date) if one.effective_date else "No date",
        meta=format_html("<small>{}</small>", human(row.unusual_type)) if row.unusual_type else "",
        name=format_html('<small class="sd-on-phone">{}</small>', owner) if owner else "",
        borrower=_borrower(owner) if table.has_borrowers else "",
        amounts=explain_missing(_amounts(row, table), lambda: row.why_null),
        account=_account(row, table) if table.has_accounts else "",
    )


def _account(row: RepaymentRow, table: RepaymentTable) -> SafeString:
    product = human(row.repayment.product)
    bank = "" if table.bank else row.repayment.borrower_bank_account_uuid
    return format_html(
        ACCOUNT,
        _link(row.account, format_html("{} {}", or_dash(product), row.account.uuid[:8]))
        if row.account
        else product,
        format_html('<small>Bank <code title="{}">{}</code></small>', bank, str(bank)[:8]) if bank else "",
    )


def _borrower(owner: Borrower | None) -> SafeString:
    if not owner:
        return SafeString("<td></td>")
    return format_html(BORROWER, owner.get_absolute_url(), owner, owner)


def _amounts(row: RepaymentRow, table: RepaymentTable) -> SafeString:
    one = row.repayment
    status = format_html(
        STATUS,
        "" if table.is_of_one_status else status_badge(one.status),
        format_html_join("", "{}", ((badge("warn", rule.text, "scale"),) for rule in row.findings)),
        format_html('<small title="{}">{}</small>', row.reason, row.reason) if row.reason else "",
    )
    # Blank if the payment wasn't split or the part is zero.
    is_split = any(getattr(one, name) is not None for name in PART_COLUMNS)
    parts = ((name, getattr(one, name)) for name in table.part_columns)
    shown = (
        money(amount) if is_split and (amount is None or amount or name not in PARTS) else ""
        for name, amount in parts
    )
    return format_html(
        AMOUNTS,
        money(one.amount),
        split(row),
        status if table.has_status else "",
        format_html_join("", PART, ((words,) for words in shown)),
    )


def _link(record: Account, words: Any) -> SafeString:
    return format_html('<a href="{}">{}</a>', record.get_absolute_url(), words)


@register.filter
def split(row: RepaymentRow) -> SafeString:
    """The split of a payment as a bar; empty if the service did not split it."""
    parts = [part for part in row.parts if part.amount]
    if not parts:
        return SafeString()
    rect = '<rect class="sd-bar-{}" x="{}" width="{}" height="6"/>'
    rects = format_html_join("", rect, ((part.name, part.start, part.width) for part in parts))
    return format_html(SPLIT, ", ".join(f"{part.name} {money(part.amount)}" for part in parts), rects)


@register.inclusion_tag("repayments/payment_card.html")
def payment_card(linked: LinkedMessage, repayment: servicing.Repayment) -> dict[str, Any]:
    message, subject = linked.message, linked.subject
    on_file = Repayment.objects.filter(pk=subject.pk).first() if isinstance(subject, Repayment) else None
    return {
        "row": RepaymentRow(repayment, linked.account, linked.borrower, message.why_null),
        "history": payment_history(on_file, messages_of_repayment(message.subject_uuid)),
    }
