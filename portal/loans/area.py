"""What loans add to shared pages."""

from portal.core.areas import Area, HelpPage, NavigationEntry

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Loans",
            icon="cash",
            url_name="loans:index",
            act="loans.index",
            key="l",
            group="Accounts",
            order=40,
        )
    ],
    help=[
        HelpPage(
            address="loans",
            title="Loans",
            picture="A loan: past due, due next, remaining payments and principal",
            order=60,
        ),
    ],
    verbs={
        "loans.schedule": "exported the schedule of",
        "loans.export": "exported loans:",
    },
)
