"""Teams, people and tickets in Django admin."""

from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop
from knox.models import AuthToken

from helpdesk.pages import signed_in
from helpdesk.service_admin import ReadOnlyAdmin, ServiceFormMixin, act_on_each
from tickets import services
from tickets.models import (
    Comment,
    Membership,
    MembershipChange,
    Receipt,
    Team,
    Ticket,
    TicketEvent,
    TicketLink,
    User,
)
from tickets.states import Role

admin.site.site_header = _("Helpdesk administration")
admin.site.site_title = _("Helpdesk")


@admin.register(User)
class UserAdmin(DjangoUserAdmin):
    """Accounts. They are deactivated, never deleted, and that goes through the service."""

    list_display = ("username", "first_name", "last_name", "email", "is_active", "is_superuser")
    fieldsets = (
        *DjangoUserAdmin.fieldsets,  # type: ignore[misc]
        (_("Helpdesk"), {"fields": ("time_zone",)}),
    )
    readonly_fields = ("is_active", "last_login", "date_joined")
    actions = ("deactivate", "activate")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_act_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Write what was changed in the form and nothing else: the rest may have moved meanwhile."""
        if not change:
            super().save_model(request, obj, form, change)
        elif form.changed_data:
            columns = {field.name for field in User._meta.concrete_fields}
            obj.save(update_fields=columns & set(form.changed_data))

    @admin.action(description=_("Deactivate and remove from all teams"), permissions=["act"])
    def deactivate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        act_on_each(
            request,
            queryset,
            lambda user: services.deactivate_account(
                user_id=user.pk, actor_id=signed_in(request).pk
            ),
            gettext_noop("%(count)d accounts were deactivated."),
        )

    @admin.action(description=_("Activate"), permissions=["act"])
    def activate(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        act_on_each(
            request,
            queryset,
            lambda user: services.activate_account(user_id=user.pk, actor_id=signed_in(request).pk),
            gettext_noop("%(count)d accounts were activated."),
        )


class NewTeamForm(forms.ModelForm):
    # Searched for, as in `MembershipAdmin`: a plain select would list every account.
    administrator = forms.ModelChoiceField(
        label=_("First administrator"),
        queryset=User.objects.filter(is_active=True),
        widget=AutocompleteSelect(Membership._meta.get_field("user"), admin.site),
    )

    class Meta:
        model = Team
        fields: ClassVar = ["name", "slug"]


@admin.register(Team)
class TeamAdmin(ServiceFormMixin, admin.ModelAdmin):
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")

    def has_delete_permission(self, request: HttpRequest, obj: Team | None = None) -> bool:
        return False

    def get_form(
        self, request: HttpRequest, obj: Team | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is None:
            kwargs["form"] = NewTeamForm
        return super().get_form(request, obj, change, **kwargs)

    def save_model(self, request: HttpRequest, obj: Team, form: Any, change: bool) -> None:
        """A new team gets its first administrator with it. A change leaves the ticket counter alone."""
        if change:
            obj.save(update_fields=form.changed_data)
            return
        team = services.create_team(
            name=obj.name, slug=obj.slug, admin_id=form.cleaned_data["administrator"].pk
        )
        obj.pk = team.pk


@admin.register(Membership)
class MembershipAdmin(ServiceFormMixin, ReadOnlyAdmin):
    """Who is in which team. Joining, changing role and leaving go through the services."""

    list_display = ("user", "team", "role", "created_at")
    list_filter = ("role", "team")
    list_select_related = ("user", "team")
    search_fields = ("user__username", "user__first_name", "user__last_name", "team__name")
    autocomplete_fields = ("team", "user")
    actions = ("make_admin", "make_agent", "make_customer", "remove")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        if db_field.name == "user":
            kwargs["queryset"] = User.objects.filter(is_active=True)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        """Only ever a new one. What the form could not know yet, the service refuses on a page of its own."""
        obj.pk = services.add_member(
            team_id=obj.team_id,
            actor_id=signed_in(request).pk,
            user_id=obj.user_id,
            role=obj.role,
        ).pk

    def _change_role(
        self, request: HttpRequest, queryset: QuerySet[Membership], role: Role
    ) -> None:
        act_on_each(
            request,
            queryset.select_related("user"),
            lambda member: services.change_role(
                team_id=member.team_id,
                actor_id=signed_in(request).pk,
                membership_id=member.pk,
                role=role,
            ),
            gettext_noop("%(count)d roles were changed."),
        )

    @admin.action(description=_("Make administrator"), permissions=["act"])
    def make_admin(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        self._change_role(request, queryset, Role.ADMIN)

    @admin.action(description=_("Make agent"), permissions=["act"])
    def make_agent(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        self._change_role(request, queryset, Role.AGENT)

    @admin.action(description=_("Make customer"), permissions=["act"])
    def make_customer(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        self._change_role(request, queryset, Role.CUSTOMER)

    @admin.action(description=_("Remove from the team"), permissions=["act"])
    def remove(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        act_on_each(
            request,
            queryset.select_related("user"),
            lambda member: services.remove_member(
                team_id=member.team_id, actor_id=signed_in(request).pk, membership_id=member.pk
            ),
            gettext_noop("%(count)d people were removed."),
        )


@admin.register(MembershipChange)
class MembershipChangeAdmin(ReadOnlyAdmin):
    list_display = ("team", "user", "role", "actor", "at")
    list_filter = ("role", "team")
    list_select_related = ("team", "user", "actor")
    search_fields = ("user__username", "user__first_name", "user__last_name", "team__name")


@admin.register(Ticket)
class TicketAdmin(ReadOnlyAdmin):
    list_display = ("number", "title", "team", "status", "priority", "assignee", "due_at")
    list_filter = ("status", "priority", "team")
    list_select_related = ("team", "assignee__user")
    search_fields = ("title", "=number")
    actions = ("cancel_reminder",)

    @admin.action(description=_("Cancel reminder"), permissions=["act"])
    def cancel_reminder(self, request: HttpRequest, queryset: QuerySet[Ticket]) -> None:
        cancel = partial(services.schedule_reminder, actor_id=signed_in(request).pk, minutes=None)
        act_on_each(
            request,
            queryset,
            lambda ticket: cancel(
                team_id=ticket.team_id, ticket_id=ticket.pk, version=ticket.version
            ),
            gettext_noop("%(count)d reminders were cancelled."),
        )


@admin.register(TicketEvent)
class TicketEventAdmin(ReadOnlyAdmin):
    list_display = ("ticket", "version", "kind", "actor_name", "reason", "created_at")
    list_filter = ("kind",)
    list_select_related = ("ticket",)
    search_fields = ("=ticket__number", "actor_name")


@admin.register(TicketLink)
class TicketLinkAdmin(ReadOnlyAdmin):
    list_display = ("ticket", "blocker", "team", "created_by", "created_at")
    list_filter = ("team",)
    list_select_related = ("ticket", "blocker", "team", "created_by")
    search_fields = ("=ticket__number", "=blocker__number")


@admin.register(Comment)
class CommentAdmin(ReadOnlyAdmin):
    list_display = ("ticket", "author", "internal", "created_at")
    list_filter = ("internal",)
    list_select_related = ("ticket", "author")
    search_fields = ("=ticket__number", "author__username")


@admin.register(Receipt)
class ReceiptAdmin(ReadOnlyAdmin):
    list_display = ("key", "user", "created_at")
    list_select_related = ("user",)
    search_fields = ("key", "user__username")


# Theirs lets a token's hash be typed in and its owner be changed.
admin.site.unregister(AuthToken)


@admin.register(AuthToken)
class AuthTokenAdmin(ReadOnlyAdmin):
    """Who holds a token, until when. Deleting one signs that program out."""

    list_display = ("token_key", "user", "created", "expiry")
    list_select_related = ("user",)
    search_fields = ("token_key", "user__username")
    fields = ("token_key", "user", "created", "expiry")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)
