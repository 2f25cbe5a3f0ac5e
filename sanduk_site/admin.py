"""People and roles in the admin: the same rules as `sanduk user`, and the password once more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.decorators import method_decorator

from runs import audit
from runs.pages import page
from runs.refusal import Refusal
from sanduk_site import links, people, roles
from sanduk_site.sudo import fresh_login_required

if TYPE_CHECKING:
    BaseUserAdmin = UserAdmin[Any]
else:
    BaseUserAdmin = UserAdmin

admin.site.unregister(get_user_model())
admin.site.unregister(Group)
Method = TypeVar("Method", bound=Callable[..., Any])


def fresh(method: Method) -> Method:
    """A page of a ModelAdmin that asks for the password first."""
    return method_decorator(fresh_login_required)(method)  # type: ignore[arg-type]


class NewPersonForm(forms.ModelForm):  # type: ignore[type-arg]
    """A name and roles; the password is set by whom it belongs to."""

    class Meta:
        model = get_user_model()
        fields = ("username", "groups")


@admin.register(get_user_model())
class PersonAdmin(BaseUserAdmin):
    """Nobody is deleted: what they decided names them. `sanduk user off` shuts out at once."""

    list_display = ["username", "roles_held", "is_active", "is_superuser", "last_login"]
    list_filter = ["groups", "is_active", "is_superuser"]
    actions = None
    add_form = NewPersonForm
    add_fieldsets = ((None, {"fields": ("username", "groups")}),)
    add_form_template = "admin/change_form.html"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("groups")

    @admin.display(description="roles")
    def roles_held(self, user: Any) -> str:
        return ", ".join(group.name for group in user.groups.all())

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        given = ["last_login", "date_joined", *super().get_readonly_fields(request, obj)]
        # only who may do everything lets others do everything
        more = [] if _is_superuser(request) else ["is_superuser", "user_permissions"]
        return [*given, *more]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is not None and obj.is_superuser and not _is_superuser(request):
            return False
        return bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @fresh
    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return super().add_view(request, *args, **kwargs)

    @fresh
    def change_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().change_view(request, *args, **kwargs)
        except Refusal as exc:
            messages.error(request, str(exc))
            return HttpResponseRedirect(request.path)

    @fresh
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        """A link with which they set it themselves: nobody knows another's password."""
        user = self.get_object(request, unquote(id))
        if user is None:
            raise Http404
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        if request.method == "POST":
            try:
                _hand_over_link(request, user)
            except Refusal as exc:
                messages.error(request, str(exc))
            return redirect("admin:auth_user_change", user.pk)
        name = user.get_username()
        context = {"person": name}
        return page(request, "site/new_link.html", context, title=name, section="admin")

    def response_add(self, request: HttpRequest, obj: Any, *args: Any) -> HttpResponse:
        _hand_over_link(request, obj)
        return super().response_add(request, obj, *args)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            obj.is_staff = True  # the pages are the admin's: a role without it opens none
            obj.set_unusable_password()
        super().save_model(request, obj, form, change)
        action = "user.change" if change else "user.add"
        changed = sorted(name for name in form.changed_data if "password" not in name)
        audit.record(action, _subject(obj), actor=request.user, changed=changed)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Keep the roles; all of it is taken back when no administrator would be left."""
        super().save_related(request, form, formsets, change)
        roles.check_one_is_left(form.instance.get_username())
        if "groups" in form.changed_data:
            held = roles.of(form.instance)
            audit.record("user.role", _subject(form.instance), actor=request.user, roles=held)


@admin.register(Group)
class RoleAdmin(GroupAdmin):
    """The four roles are what an upgrade makes them; other groups are the operator's own."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_role = obj is not None and obj.name in roles.RIGHTS
        return not is_role and bool(super().has_change_permission(request, obj))

    has_delete_permission = has_change_permission

    @fresh
    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return super().add_view(request, *args, **kwargs)

    @fresh
    def change_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return super().change_view(request, *args, **kwargs)


def _hand_over_link(request: HttpRequest, user: Any) -> None:
    """Show, once, the link with which this person sets a password. Raises Refusal."""
    token = people.new_link(user, actor=request.user)
    link = links.address_of(token, settings.SANDUK_BASE_URL)
    name = user.get_username()
    messages.warning(request, f"{name} sets a password with this link, once, for 24 hours: {link}")


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _subject(user: Any) -> str:
    return f"user:{user.get_username()}"[:100]
