"""The book on a day on paper: figures, chart, aging and roll on one page, cash, forecast and owners on another."""

from portal.documents.document import Document, Form
from portal.documents.options import Options
from portal.portfolio.page import Page
from portal.records.models import Repayment
from portal.ui import wording

FORM = Form("PF", "Portfolio", "documents/papers/portfolio.html", is_internal=True)


def document(page: Page, options: Options) -> Document:
    """Build the paper from the tables of the page."""
    chosen = page.chosen
    content = {
        "day": chosen.day,
        "since": chosen.roll_since,
        "oldest": chosen.oldest_answer_on,
        "corrected": page.corrected,
        "figures": page.figures,
        "chart": page.chart,
        "roll": page.roll,
        "cash": page.cash,
        "outlook": page.outlook,
        "owners": page.owners,
    }
    about = f"End of {wording.day(chosen.day, weekday=True)}"
    return Document(form=FORM, subject=Repayment(), about=about, content=content, options=options)
