"""Lines of credit that this desk knows, across borrowers."""

from decimal import Decimal

from django.test import Client as Browser

from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from tests.portal.lists import AccountList


class TestList(AccountList):
    address = "/lines/"
    rows = "line-rows"
    kind = Kind.LINE

    def test_what_is_past_due_can_be_put_in_order(self, viewer: Browser, desk: Sandbox) -> None:
        less, more = self.known(desk, past_due=Decimal("12.50")), self.known(desk, past_due=Decimal("310"))
        one_way = self.order(self.fragment(viewer, "?sort=past_due"), less, more)
        assert self.order(self.fragment(viewer, "?sort=-past_due"), less, more) == one_way[::-1]
