"""What messages add to shared pages."""

from portal.core.areas import Area, HelpPage, ItemKind, NavigationEntry
from portal.messaging.attention import undelivered_messages

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Messages",
            icon="webhook",
            url_name="messaging:index",
            act="messaging.index",
            key="m",
            group="Records",
            order=80,
        )
    ],
    attention=[
        ItemKind(name="system", title="System", order=10, sources=[undelivered_messages]),
    ],
    help=[
        HelpPage(
            address="messaging",
            title="Messages",
            picture="Messages: events by day with status, amount and borrower",
            order=100,
        ),
    ],
    verbs={
        "messaging.download": "downloaded message",
        "messaging.export": "exported messages:",
        "messaging.sync": "synced messages",
        "messaging.link": "linked the bank account of",
    },
)
