"""allauth's forms of passkeys, for which an answer that no browser gives is a refusal and not a failure."""

from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.webauthn import forms

from portal.ui.guard import GuardedForm


class Tolerant:
    """Whatever stands in place of a credential is looked at by a library that expects one."""

    def clean_credential(self) -> Any:
        return self._or_refused("clean_credential", self.cleaned_data["credential"])  # type: ignore[attr-defined]

    def clean(self) -> Any:
        return self._or_refused("clean", self.cleaned_data)  # type: ignore[attr-defined]

    def _or_refused(self, method: str, default: Any) -> Any:
        clean = getattr(super(), method, lambda: default)
        try:
            return clean()
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise get_adapter().validation_error("incorrect_code") from error


class AddForm(GuardedForm, Tolerant, forms.AddWebAuthnForm):  # type: ignore[misc]
    pass


class EditForm(GuardedForm, forms.EditWebAuthnForm):  # type: ignore[misc]
    pass


class AuthenticateForm(Tolerant, forms.AuthenticateWebAuthnForm):  # type: ignore[misc]
    pass


class LoginForm(Tolerant, forms.LoginWebAuthnForm):  # type: ignore[misc]
    pass


class ReauthenticateForm(Tolerant, forms.ReauthenticateWebAuthnForm):  # type: ignore[misc]
    pass
