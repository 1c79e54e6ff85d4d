"""The form of the sign-in page, which asks for the second factor first where too many passwords were tried."""

from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.forms import LoginForm
from allauth.account.stages import LoginStageController
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.stages import AuthenticateStage
from django import forms
from django.http import HttpRequest, HttpResponse

from portal.accounts.adapter import account_with_second_factor, is_within
from portal.accounts.models import User


class SignInForm(LoginForm):  # type: ignore[misc]
    """Name and password; after 100 wrong passwords for a name in an hour the code too, before either is looked at."""

    code = forms.CharField(label="Code", required=False, max_length=64)
    user: User | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.needs_code = False
        self.factor: AuthenticateForm | None = None

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("login", "")
        is_tried_often = not is_within(self.request, "login_failed_by_name", name.casefold(), dry_run=True)
        if is_tried_often and account_with_second_factor(name):
            self.needs_code = True
            if not self.cleaned_data.get("code"):
                raise forms.ValidationError(
                    "Too many wrong passwords were tried for this name. "
                    "Enter the code from your app with your password, or use a passkey."
                )
        typed: dict[str, Any] = super().clean()
        if self.needs_code and self.user:
            self.factor = AuthenticateForm(data={"code": typed["code"]}, user=self.user)
            if not self.factor.is_valid():
                raise get_adapter().validation_error("username_password_mismatch")
        return typed

    def login(self, request: HttpRequest, redirect_url: str | None = None) -> HttpResponse:
        """Sign in, past the page that would ask for the code again."""
        response: HttpResponse = super().login(request, redirect_url=redirect_url)
        stage = LoginStageController.enter(request, AuthenticateStage.key) if self.factor else None
        if stage is None or self.factor is None:
            return response
        self.factor.save()
        passed: HttpResponse = stage.exit()
        return passed
