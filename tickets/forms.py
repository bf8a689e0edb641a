"""Forms: what a browser sends, made into the arguments of a service. Fields are named like the arguments."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from tickets import selectors
from tickets.selectors import TicketFilter, Viewer
from tickets.services.checks import MAX_TEXT
from tickets.states import ACTIVE, REMINDER_MINUTES, Priority, Status


class StyledForm(forms.Form):
    """Bootstrap's classes, and errors that a screen reader finds at their field.

    `viewer` is who looks, for forms whose choices depend on it.
    """

    # Several forms share a page, some with fields of the same name.
    ids = "id_%s"

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        viewer: Viewer | None = None,
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=initial, auto_id=self.ids)
        for field in self.fields.values():
            widget = field.widget
            if isinstance(widget, forms.CheckboxInput):
                css = "form-check-input"
            elif isinstance(widget, forms.Select):
                css = "form-select"
            else:
                css = "form-control"
            widget.attrs["class"] = css

    def add_error(self, field: str | None, error: Any) -> None:
        super().add_error(field, error)
        for name in self.errors:
            if name in self.fields:
                attributes = self.fields[name].widget.attrs
                attributes["class"] = (
                    f"{attributes['class'].removesuffix(' is-invalid')} is-invalid"
                )
                attributes["aria-invalid"] = "true"


class VersionedForm(StyledForm):
    """Carries the version of the ticket the person saw. The page writes the field itself, always fresh."""

    version = forms.IntegerField(
        widget=forms.HiddenInput,
        error_messages={
            "required": _("Please load the page again."),
            "invalid": _("Please load the page again."),
        },
    )


def text_area(rows: int) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows})


class NewTicketForm(StyledForm):
    title = forms.CharField(label=_("Title"), max_length=200)
    description = forms.CharField(label=_("Description"), max_length=MAX_TEXT, widget=text_area(8))
    priority = forms.ChoiceField(
        label=_("Priority"), choices=Priority.choices, initial=Priority.NORMAL
    )


class ReplyForm(StyledForm):
    ids = "id_reply_%s"

    body = forms.CharField(label=_("Reply"), max_length=MAX_TEXT, widget=text_area(4))


class NoteForm(StyledForm):
    ids = "id_note_%s"

    body = forms.CharField(label=_("Internal note"), max_length=MAX_TEXT, widget=text_area(3))


class AssignForm(VersionedForm):
    ids = "id_assign_%s"

    membership_id = forms.TypedChoiceField(
        label=_("Responsible"), coerce=int, empty_value=None, required=False
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        viewer: Viewer,
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, viewer=viewer, initial=initial)
        self.fields["membership_id"].choices = [  # type: ignore[attr-defined]
            ("", _("Nobody")),
            *(
                (member.pk, member.user.display_name)
                for member in selectors.assignable(team_id=viewer.team.pk)
            ),
        ]


class EditForm(VersionedForm):
    ids = "id_edit_%s"

    title = forms.CharField(label=_("Title"), max_length=200)
    description = forms.CharField(label=_("Description"), max_length=MAX_TEXT, widget=text_area(5))
    priority = forms.ChoiceField(label=_("Priority"), choices=Priority.choices)


class TransitionForm(VersionedForm):
    ids = "id_step_%s"

    to = forms.ChoiceField(choices=Status.choices, widget=forms.HiddenInput)
    note = forms.CharField(
        label=_("Note for the team"), max_length=2000, required=False, widget=text_area(2)
    )


class ReminderForm(VersionedForm):
    ids = "id_reminder_%s"

    minutes = forms.IntegerField(
        label=_("In minutes"),
        min_value=REMINDER_MINUTES.start,
        max_value=REMINDER_MINUTES.stop - 1,
        initial=60,
    )
    note = forms.CharField(label=_("Note"), max_length=200, required=False)


class CancelReminderForm(VersionedForm):
    """Nothing but the version."""


class BlockForm(VersionedForm):
    ids = "id_block_%s"

    number = forms.IntegerField(label=_("Number of the blocker"), min_value=1)


class UnblockForm(VersionedForm):
    link_id = forms.IntegerField(
        widget=forms.HiddenInput,
        error_messages={
            "required": _("Please load the page again."),
            "invalid": _("Please load the page again."),
        },
    )


class FilterForm(forms.Form):
    """What the list shows. Lives in the address, so that a link shares it."""

    status = forms.ChoiceField(label=_("Status"), required=False)
    assignee = forms.ChoiceField(label=_("Responsible"), required=False)
    overdue = forms.BooleanField(label=_("Overdue"), required=False)

    def __init__(self, *args: Any, viewer: Viewer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["status"].choices = [  # type: ignore[attr-defined]
            ("", _("All")),
            ("active", _("Open or in progress")),
            *Status.choices,
        ]
        if not viewer.is_staff:
            del self.fields["assignee"], self.fields["overdue"]
        else:
            self.fields["assignee"].choices = [  # type: ignore[attr-defined]
                ("", _("Anybody")),
                ("me", _("Me")),
                ("none", _("Nobody")),
                *(
                    (str(member.pk), member.user.display_name)
                    for member in selectors.assignable(team_id=viewer.team.pk)
                ),
            ]
        for field in self.fields.values():
            field.widget.attrs["class"] = (
                "form-check-input"
                if isinstance(field.widget, forms.CheckboxInput)
                else "form-select form-select-sm"
            )

    @property
    def wanted(self) -> TicketFilter:
        """What it asks for. A value that is none is shown as an error and filters nothing."""
        values = self.cleaned_data
        status = values.get("status")
        return TicketFilter(
            statuses=ACTIVE if status == "active" else [status] if status else [],
            assignee=values.get("assignee") or "",
            overdue=values.get("overdue") or None,
        )
