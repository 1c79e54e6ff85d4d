"""What Home adds to shared pages."""

from portal.core.areas import Area, HelpPage, NavigationEntry, SearchAction

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Home",
            icon="home",
            url_name="home:index",
            act="home.index",
            key="h",
            order=10,
            has_number=True,
        )
    ],
    actions=[
        SearchAction("Help", "help-circle", "home:help:index", "home.help"),
    ],
    help=[
        HelpPage(address="first-day", title="First day", order=10),
        HelpPage(
            address="home",
            title="Home",
            picture="Home: items that need attention by kind, with their sums",
            order=20,
        ),
        HelpPage(address="keyboard", title="Keyboard shortcuts", order=150),
        HelpPage(address="news", title="What’s new", order=160),
    ],
    verbs={
        "home.snooze": "snoozed",
        "home.wake": "restored:",
    },
)
