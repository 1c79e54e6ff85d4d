"""What approvals add to shared pages."""

from portal.approvals.attention import pending_approvals
from portal.core.areas import Area, HelpPage, ItemKind, NavigationEntry

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Approvals",
            icon="users",
            url_name="approvals:index",
            act="approvals.index",
            key="v",
            group="Records",
            order=90,
            has_number=True,
        )
    ],
    attention=[
        ItemKind(name="approvals", title="Approvals", order=20, sources=[pending_approvals]),
    ],
    help=[
        HelpPage(
            address="approvals",
            title="Approvals",
            picture="Review of a new legal name, which needs an approval",
            order=110,
        ),
    ],
    verbs={
        "approvals.detail": "opened the change to",
        "approvals.ask": "requested approval of the change to",
        "approvals.approve": "approved the change to",
        "approvals.refuse": "rejected the change to",
        "approvals.withdraw": "withdrew the change to",
        "approvals.expire": "closed the expired change to",
        "approvals.send": "sent the approved change to",
    },
)
