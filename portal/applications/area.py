"""What applications add to shared pages."""

from portal.core.areas import Area, HelpPage, NavigationEntry, SearchAction

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Applications",
            icon="file-text",
            url_name="applications:index",
            act="applications.index",
            key="a",
            group="Borrowers",
            order=30,
        )
    ],
    actions=[
        SearchAction(
            "New application", "plus", "applications:submit", "applications.submit", "borrowers:detail"
        ),
    ],
    help=[
        HelpPage(
            address="applications",
            title="Applications and offers",
            picture="Offers of an application side by side",
            order=50,
        ),
    ],
    verbs={
        "applications.submit": "sent",
        "applications.open": "opened by ID",
        "applications.prefer": "changed the preferred offer of",
        "applications.follow": "checked the funding of",
        "applications.export": "exported applications:",
        "applications.export_offers": "exported the offers of",
    },
    attempts={
        "applications.submit": "started sending",
    },
)
