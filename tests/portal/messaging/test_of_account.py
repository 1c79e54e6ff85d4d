"""Messages about repayments on the pages of loans, lines and borrowers."""

import pytest
from django.test import Client as Browser

from portal.audit.models import Actor
from portal.gateway.client import client_for
from portal.messaging.sync import read_front
from servicing.sandbox import Sandbox
from tests import given
from tests.portal.pages import page, panel


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["loan", "line"])
def test_account_pages_show_messages_about_their_repayments(
    viewer: Browser, portal_service: Sandbox, kind: str
) -> None:
    owner = given.borrower(portal_service)
    one, other = (getattr(given, kind)(portal_service, owner) for _ in range(2))
    for account, amount in ((one, "310.00"), (other, "77.00")):
        payment = portal_service.world.repayment(account.uuid, amount=amount)
        portal_service.world.message("payment.succeeded", payment)
        panel(viewer, account.get_absolute_url(), kind)
    assert 'id="messages-title"' not in page(viewer, one.get_absolute_url())
    read_front(client_for(Actor.system("test")))
    section = page(viewer, one.get_absolute_url()).partition('id="messages-title"')[2]
    assert "Payment succeeded" in section
    assert "$310.00" in section
    assert "$77.00" not in section
    assert f'href="/messages/?id={one.uuid}"' in section
    tab = page(viewer, f"/borrowers/{owner.uuid}/?tab=messages").partition('id="messages-title"')[2]
    assert [tab.count(amount) for amount in ("$310.00", "$77.00")] == [1, 1]
    assert f'href="/messages/?borrower={owner.uuid}"' in tab
