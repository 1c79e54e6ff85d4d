"""What borrowers add to shared pages."""

from portal.borrowers.attention import incomplete_onboardings, old_drafts
from portal.core.areas import Area, HelpPage, ItemKind, NavigationEntry, SearchAction

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Borrowers",
            icon="building-store",
            url_name="borrowers:index",
            act="borrowers.index",
            key="b",
            group="Borrowers",
            order=20,
        )
    ],
    actions=[
        SearchAction("New borrower", "plus", "borrowers:create", "borrowers.create"),
        SearchAction("Edit", "pencil", "borrowers:edit", "borrowers.edit", "borrowers:detail"),
    ],
    attention=[
        ItemKind(name="onboarding", title="Onboarding", order=110, sources=[incomplete_onboardings]),
        ItemKind(name="drafts", title="Drafts", order=120, sources=[old_drafts]),
    ],
    help=[
        HelpPage(
            address="borrowers",
            title="Borrowers",
            picture="A borrower’s page: contact details, a data check and what is past due",
            order=30,
        ),
        HelpPage(
            address="onboarding",
            title="Onboarding and editing",
            picture="New borrower: its five steps, open at the business",
            order=40,
        ),
    ],
    verbs={
        "borrowers.create_commercial": "created borrower",
        "borrowers.update": "changed the profile of",
        "borrowers.update_key_person": "changed key person",
        "borrowers.no_change": "saved without changes:",
        "borrowers.detail": "opened borrower",
        "borrowers.edit": "opened the form to change",
        "borrowers.export": "exported borrowers:",
    },
    attempts={
        "borrowers.create_commercial": "started creating borrower",
        "borrowers.update": "started changing the profile of",
        "borrowers.update_key_person": "started changing key person",
    },
)
