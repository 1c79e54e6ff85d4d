"""What collections add to shared pages."""

from portal.collections.attention import broken_promises, promises_due_today
from portal.collections.list_page import promise_operator
from portal.core.areas import Area, HelpPage, ItemKind, NavigationEntry

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Collections",
            icon="list-check",
            url_name="collections:index",
            act="collections.index",
            key="o",
            group="Accounts",
            order=60,
        )
    ],
    operators={"promise": promise_operator},
    attention=[
        ItemKind(name="promised", title="Promises due today", order=30, sources=[promises_due_today]),
        ItemKind(name="broken", title="Broken promises", order=40, sources=[broken_promises]),
    ],
    help=[
        HelpPage(
            address="collections",
            title="Collections",
            picture="Collections: accounts past due by aging, with their promises",
            order=80,
        ),
    ],
    verbs={
        "collections.log": "logged a contact about",
        "collections.undo": "undid a contact about",
        "collections.promise": "logged a promise to pay on",
        "collections.withdraw": "withdrew a promise to pay on",
        "collections.assign": "changed the owner of",
        "collections.export": "exported the worklist:",
        "collections.export_returns": "exported returned payments:",
        "collections.print": "printed the worklist:",
    },
)
