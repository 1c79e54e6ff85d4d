"""Applications that this desk knows, across borrowers."""

from django.test import Client as Browser

from portal.registry.models import Kind
from servicing.sandbox import Sandbox
from tests.portal.lists import AccountList


class TestList(AccountList):
    address = "/applications/"
    rows = "application-rows"
    kind = Kind.APPLICATION

    def test_it_is_narrowed_to_a_decision(self, viewer: Browser, desk: Sandbox) -> None:
        approved, rejected = self.known(desk, status="APPROVED"), self.known(desk, status="REJECTED")
        found = self.fragment(viewer, "?status=REJECTED")
        assert rejected.get_absolute_url() in found
        assert approved.get_absolute_url() not in found
