"""What lines of credit add to shared pages."""

from portal.core.areas import Area, HelpPage, NavigationEntry

AREA = Area(
    navigation=[
        NavigationEntry(
            label="Lines of credit",
            icon="wallet",
            url_name="credit_lines:index",
            act="credit_lines.index",
            key="c",
            group="Accounts",
            order=50,
        )
    ],
    help=[
        HelpPage(
            address="credit_lines",
            title="Lines of credit and statements",
            picture="A line of credit: payoff, available credit and what is due next",
            order=70,
        ),
    ],
    verbs={
        "credit_lines.pdf": "opened",
        "credit_lines.download": "downloaded",
        "credit_lines.export": "exported lines of credit:",
    },
)
