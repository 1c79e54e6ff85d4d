"""Forms for preferences, staff accounts in the admin, signing in and passkeys."""

import zoneinfo
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import LoginForm
from allauth.account.stages import LoginStageController
from allauth.core import context
from allauth.mfa.adapter import get_adapter as get_mfa_adapter
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.webauthn import forms as webauthn
from django import forms
from django.conf import settings
from django.contrib.auth.forms import AdminPasswordChangeForm, AdminUserCreationForm, UserChangeForm
from django.http import HttpRequest, HttpResponse

from portal.accounts import password_links
from portal.accounts.adapter import TOO_MANY, account_with_second_factor, is_below_limit, too_many_attempts
from portal.accounts.models import LastAdministrator, User
from portal.accounts.roles import Role
from portal.ui.forms import StaffForm
from portal.ui.guard import GuardedForm

MAIL_SWITCHES = ["mail_approvals", "mail_follow_ups", "mail_promises", "mail_digest"]


US_ZONES = {
    "America/New_York": "Eastern",
    "America/Chicago": "Central",
    "America/Denver": "Mountain",
    "America/Phoenix": "Arizona",
    "America/Los_Angeles": "Pacific",
    "America/Anchorage": "Alaska",
    "Pacific/Honolulu": "Hawaii",
}


def zone_choices(user: User) -> list[Any]:
    """The company's time zone, those of the United States by name, all others, and whichever the person has."""
    others = {name for name in zoneinfo.available_timezones() if "/" in name} | {user.time_zone}
    company = US_ZONES.get(settings.BUSINESS_TIME_ZONE, settings.BUSINESS_TIME_ZONE)
    return [
        ("", f"Company time zone ({company})"),
        ("United States", list(US_ZONES.items())),
        ("Other", [(zone, zone) for zone in sorted(others - US_ZONES.keys() - {""})]),
    ]


class PreferencesForm(StaffForm, forms.ModelForm):  # type: ignore[type-arg]
    """The person's name, mail and display preferences."""

    time_zone = forms.ChoiceField(required=False)

    class Meta:
        model = User
        fields = ["preferred_name", "time_zone", "theme", "density", "shortcuts", *MAIL_SWITCHES]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not (settings.HAS_MAIL and self.instance.email):
            for name in MAIL_SWITCHES:
                del self.fields[name]
        self.fields["preferred_name"].help_text = "Your full name is used in the audit trail."
        self.fields["time_zone"].choices = zone_choices(self.instance)  # type: ignore[attr-defined]

    @property
    def mail_fields(self) -> list[forms.BoundField]:
        """The fields that choose the person's mail."""
        return [self[name] for name in MAIL_SWITCHES if name in self.fields]

    @property
    def settings_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name not in MAIL_SWITCHES]


class ThemeForm(forms.ModelForm):  # type: ignore[type-arg]
    """Light, dark or matching the system."""

    class Meta:
        model = User
        fields = ["theme"]


# Label and hint of Django's own fields; None keeps Django's label.
_ADMIN_WORDS = {
    "username": (None, "Up to 150 letters, digits and @ . + - _"),
    "email": ("Email", ""),
    "usable_password": ("Password sign-in", "Without it, the person can only use single sign-on."),
    "password1": (None, "At least 12 characters. Not a common password, and not like the name or email."),
    "password2": ("Confirm password", ""),
    "password": (None, "Passwords can’t be viewed."),
    "is_active": (None, "Inactive accounts can’t sign in. Accounts can’t be deleted."),
}
_REQUIRED = {
    "username": "Enter a username.",
    "password1": "Enter a password.",
    "password2": "Enter the password again.",
}


class AdminWords(forms.BaseForm):
    """Our labels and hints for Django's own fields."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        for name, (label, hint) in _ADMIN_WORDS.items():
            if field := self.fields.get(name):
                field.label, field.help_text = label or field.label, hint
                field.error_messages["required"] = _REQUIRED.get(name, field.error_messages["required"])


class StaffPasswordForm(AdminWords, AdminPasswordChangeForm):  # type: ignore[type-arg]
    """The password of an account, in the admin."""


class StaffAddForm(AdminWords, GuardedForm, AdminUserCreationForm):  # type: ignore[type-arg]
    """A new account in the admin, optionally with a link by email to set the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sends_link = False
        choice: Any = self.fields["usable_password"]
        choice.label, choice.help_text = "Password", ""
        choice.choices = {"true": "Enter below", "false": "None (single sign-on)"}
        if password_links.are_enabled():
            choice.choices = {"link": "Email a link"} | dict(choice.choices)
            choice.initial = "link"

    def clean_usable_password(self) -> str:
        """Map our third choice to Django's "no password", which the account has until the link is used."""
        chosen: str = self.cleaned_data["usable_password"]
        self.sends_link = chosen == "link"
        return "false" if self.sends_link else chosen

    def clean(self) -> dict[str, Any] | None:
        if self.sends_link and not self.cleaned_data.get("email") and "email" not in self.errors:
            self.add_error("email", "Enter an email address for the link.")
        return super().clean()


class StaffChangeForm(AdminWords, GuardedForm, UserChangeForm):  # type: ignore[type-arg]
    """An account, in the admin."""

    time_zone = forms.ChoiceField(required=False, error_messages={"invalid_choice": "Unknown time zone."})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].choices = zone_choices(self.instance)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any] | None:
        """Reject what would leave no administrator, beside its field. Needs a transaction, as the admin has."""
        typed = super().clean()
        lost = [
            name
            for name, needed in (("role", Role.ADMIN), ("is_active", True))
            if name in self.cleaned_data and self.cleaned_data[name] != needed
        ]
        # The locks last until the form is saved.
        others = User.objects.administrators().select_for_update(no_key=True).order_by("pk")
        if lost and {one.pk for one in others} == {self.instance.pk}:
            self.add_error(lost[0], LastAdministrator())
        return typed


class ForgottenPasswordForm(GuardedForm, forms.Form):
    """Asks for a password link."""

    email = forms.EmailField(label="Email address")


class SignInForm(LoginForm):  # type: ignore[misc]
    """Name and password. After 100 wrong passwords for a name in an hour, also the code, before either is checked."""

    code = forms.CharField(label="Code", required=False, max_length=64)
    user: User | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.needs_code = False
        self.factor: AuthenticateForm | None = None

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("login", "")
        is_tried_often = not is_below_limit(
            self.request, "login_failed_by_name", name.casefold(), dry_run=True
        )
        if is_tried_often and account_with_second_factor(name):
            self.needs_code = True
            if not self.cleaned_data.get("code"):
                raise forms.ValidationError(
                    "Too many wrong passwords for this username. "
                    "Enter the code from your app with your password, or use a passkey."
                )
        typed: dict[str, Any] = super().clean()
        if self.needs_code and self.user:
            self.factor = AuthenticateForm(data={"code": typed["code"]}, user=self.user)
            if not self.factor.is_valid():
                raise get_adapter().validation_error("username_password_mismatch")
        return typed

    def login(self, request: HttpRequest, redirect_url: str | None = None) -> HttpResponse:
        """Sign in without the page that would ask for the code again."""
        response: HttpResponse = super().login(request, redirect_url=redirect_url)
        stage = LoginStageController.enter(request, AuthenticateStage.key) if self.factor else None
        if stage is None or self.factor is None:
            return response
        self.factor.save()
        passed: HttpResponse = stage.exit()
        return passed


# --- Second factors ---


class NamedWaitMixin:
    """Says how long a person has to wait after too many wrong codes."""

    user: User | None

    def add_error(self, field: str | None, error: Any) -> None:
        if self.user and getattr(error, "code", "") in (TOO_MANY, "rate_limited"):
            error = too_many_attempts(context.request, ("login_failed", f"mfa-auth-user-{self.user.pk}"))
        super().add_error(field, error)  # type: ignore[misc]


class CodeForm(NamedWaitMixin, AuthenticateForm):  # type: ignore[misc]
    pass


class ConfirmCodeForm(NamedWaitMixin, ReauthenticateForm):  # type: ignore[misc]
    pass


class SetUpAppForm(NamedWaitMixin, ActivateTOTPForm):  # type: ignore[misc]
    """The first code of an authenticator app, which is then used and signs nobody in."""

    def clean_code(self) -> str:
        code: str = super().clean_code()
        if not TOTP(Authenticator(user=self.user))._mark_code_used(code):
            raise get_mfa_adapter().validation_error("incorrect_code")
        return code


class MalformedCredentialMixin:
    """Turns a malformed credential into a form error; the library expects a well-formed one, and speaks of codes."""

    def clean_credential(self) -> Any:
        return self._validated("clean_credential", self.cleaned_data["credential"])  # type: ignore[attr-defined]

    def clean(self) -> Any:
        return self._validated("clean", self.cleaned_data)  # type: ignore[attr-defined]

    def _validated(self, method: str, default: Any) -> Any:
        clean = getattr(super(), method, lambda: default)
        try:
            return clean()
        except (KeyError, TypeError, AttributeError, ValueError, forms.ValidationError) as error:
            if getattr(error, "code", "incorrect_code") != "incorrect_code":
                raise
            raise forms.ValidationError("The passkey couldn’t be verified. Try again.") from error


class RegisteredPasskeyMixin:
    """Says when a passkey isn't registered here, mostly because it was removed; its device still offers it."""

    def clean_credential(self) -> Any:
        credential = self.cleaned_data["credential"]  # type: ignore[attr-defined]
        used = webauthn.auth.parse_authentication_response(credential).raw_id
        user = self.user or self._named_user(credential)  # type: ignore[attr-defined]
        if user is None or webauthn.auth.get_authenticator_by_credential_id(user, used) is None:
            raise forms.ValidationError(
                "This passkey isn’t registered here any more. Use your password or another passkey.",
                code="not_registered",
            )
        return super().clean_credential()  # type: ignore[misc]

    def _named_user(self, credential: Any) -> User | None:
        try:
            user: User = webauthn.auth.extract_user_from_response(credential)
        except forms.ValidationError:
            return None
        return user


class AddPasskeyForm(GuardedForm, MalformedCredentialMixin, webauthn.AddWebAuthnForm):  # type: ignore[misc]
    pass


class EditPasskeyForm(GuardedForm, webauthn.EditWebAuthnForm):  # type: ignore[misc]
    pass


class UsedPasskeyMixin(NamedWaitMixin, MalformedCredentialMixin, RegisteredPasskeyMixin):
    """A passkey that somebody signs in or confirms with."""


class AuthenticatePasskeyForm(UsedPasskeyMixin, webauthn.AuthenticateWebAuthnForm):  # type: ignore[misc]
    pass


class LoginPasskeyForm(UsedPasskeyMixin, webauthn.LoginWebAuthnForm):  # type: ignore[misc]
    pass


class ReauthenticatePasskeyForm(UsedPasskeyMixin, webauthn.ReauthenticateWebAuthnForm):  # type: ignore[misc]
    pass
