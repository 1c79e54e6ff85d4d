"""Each action in the audit trail reads as a sentence, without its code."""

import ast
import re
from collections.abc import Iterator

import pytest

from portal.accounts.roles import ACTS
from portal.audit.models import Entry
from portal.audit.reading import sentence
from portal.settings import BASE_DIR

# Functions that write an entry, and helpers that pass an action to them.
WRITERS = {"append", "log_view", "_record_credential", "note", "_note", "_record", "_factor"}
ACTION = re.compile(r"[a-z_]+\.[a-z_]+")
WRITES = {
    "borrowers.create_commercial",
    "borrowers.update",
    "borrowers.update_key_person",
    "applications.submit",
}
LIST_ACTIONS = {f"{area}.{verb}" for area in ("loans", "credit_lines") for verb in ("export", "refresh")}


def find_actions() -> Iterator[str]:
    """Find the actions in the code that writes entries."""
    for file in (BASE_DIR / "portal").rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(call, ast.Call)
                and getattr(call.func, "attr", getattr(call.func, "id", "")) in WRITERS
            ):
                texts = [
                    one.value for arg in call.args for one in ast.walk(arg) if isinstance(one, ast.Constant)
                ]
                yield from (text for text in texts if isinstance(text, str) and ACTION.fullmatch(text))


@pytest.mark.slow
def test_every_action_has_a_sentence() -> None:
    actions = {*find_actions(), *LIST_ACTIONS, *WRITES}
    assert len(actions) > 60
    phases = {action: [Entry.Phase.EVENT] for action in actions} | {
        action: [Entry.Phase.ATTEMPT, Entry.Phase.OUTCOME] for action in WRITES
    }
    entries = [Entry(action=action, phase=phase) for action, found in phases.items() for phase in found]
    assert [one.action for one in entries if one.action in sentence(one)] == []


def test_every_refused_act_has_a_name() -> None:
    refused = [Entry(action="accounts.refused", subject_label=act) for act in ACTS]
    assert [one.subject_label for one in refused if one.subject_label in sentence(one)] == []


def test_labels_fit_their_sentences() -> None:
    for action, label, words in (
        ("applications.submit", "Application for $5.00 of Bob's", "sent application for $5.00 of Bob's"),
        ("notes.add", "Loan of $5.00", "added a note to loan of $5.00"),
        ("saved_views.save", "Past due", "saved the view “Past due”"),
        ("approvals.refuse", "Bob's", "rejected the change to Bob's"),
        ("approvals.ask", "Bob's", "requested approval of the change to Bob's"),
    ):
        entry = Entry(action=action, subject_label=label, phase=Entry.Phase.OUTCOME, result="confirmed")
        assert sentence(entry) == words
