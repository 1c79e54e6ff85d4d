"""What stands around the values of an answer: wrapping members, totals and the forms of an error.

Hides where the values are inside an answer.
"""

from collections.abc import Mapping

from servicing.sandbox.choices import Choices
from servicing.sandbox.wire import JSON


def wrap(result: JSON, choices: Choices) -> JSON:
    """An object or a list, in the member that the service puts it in, if there is one."""
    name = choices.wrap_lists if isinstance(result, list) else choices.wrap
    return {name: result} if name else result


def message_page(messages: list[JSON], *, offset: int, limit: int, total: int, choices: Choices) -> JSON:
    """A page of messages (section 2.10)."""
    match choices.message_total:
        case "beside":
            return {"total": total, "data": messages}
        case "meta":
            return {"meta": {"total": total}, "data": messages}
        case "bare":
            return messages
    return {"pagination": {"offset": offset, "limit": limit, "total": total}, "data": messages}


def error_body(status: int, message: str, choices: Choices) -> JSON:
    """An error with one message."""
    body = _error_body(status, message, choices.errors)
    return {choices.wrap_errors: body} if choices.wrap_errors else body


def _error_body(status: int, message: str, form: str) -> JSON:
    match form:
        case "oauth":
            return {"error": _oauth_code(status), "error_description": message}
        case "list":
            return {"errors": [{"detail": message}]}
        case "ok":
            return {"error": message}
    return {"message": message}


def _oauth_code(status: int) -> str:
    if status == 401:
        return "invalid_client"
    return "server_error" if status >= 500 else "invalid_request"


def merge_changes(answer: JSON, changes: Mapping[str, JSON], choices: Choices) -> JSON:
    """Merge changes into the object of an answer, or into each object of its list or page."""
    if isinstance(answer, list):
        return [merge_changes(element, changes, choices) for element in answer]
    name = _wrapping_member(answer, choices)
    if name is None:
        return answer | changes
    return answer | {name: merge_changes(answer[name], changes, choices)}


def _wrapping_member(answer: dict[str, JSON], choices: Choices) -> str | None:
    """The member of an answer that holds its object or list, or None if the answer is the object."""
    if set(answer) in ({"pagination", "data"}, {"total", "data"}, {"meta", "data"}):
        return "data"
    name = next(iter(answer)) if len(answer) == 1 else None
    is_wrapped = name in (choices.wrap, choices.wrap_lists, choices.wrap_errors)
    return name if name and is_wrapped and isinstance(answer[name], dict | list) else None


def replace_total(page: JSON, total: int) -> JSON:
    """The page with another total; unchanged if it reports none."""
    if "pagination" in page:
        return page | {"pagination": page["pagination"] | {"total": total}}
    if "meta" in page:
        return page | {"meta": {"total": total}}
    return page | {"total": total} if "total" in page else page
