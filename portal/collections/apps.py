"""The app of collections."""

from typing import Any

from django.apps import AppConfig


class CollectionsConfig(AppConfig):
    """The work on past due accounts."""

    name = "portal.collections"

    def ready(self) -> None:
        """Decide promises when the repayments of their accounts are received."""
        from portal.collections.promises import decide_promises
        from portal.records.store import repayments_received

        def decide(account_uuids: list[str], **_: Any) -> None:
            decide_promises(account_uuids)

        repayments_received.connect(decide, weak=False, dispatch_uid="collections.decide_promises")
