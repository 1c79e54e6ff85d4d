"""What the portfolio adds to shared pages."""

from portal.core.areas import Area, HelpPage, NavigationEntry

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Portfolio",
            icon="chart-bar",
            url_name="portfolio:index",
            act="portfolio.index",
            key="p",
            group="Accounts",
            order=75,
        )
    ],
    help=[
        HelpPage(
            address="portfolio",
            title="Portfolio",
            picture="Portfolio: figures of a day above the aging of its past due accounts",
            order=95,
        ),
    ],
    lists={"portfolio:accounts": "Accounts of a day"},
    verbs={
        "portfolio.export": "exported the portfolio of",
        "portfolio.export_accounts": "exported the accounts of",
        "portfolio.export_payments": "exported the payments of",
    },
)
