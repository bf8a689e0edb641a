"""Pages of teams and tickets: find, parse, call the service, show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.views import LoginView
from django.core.paginator import Paginator
from django.forms import BoundField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from helpdesk.api.throttles import SignInByAddress, SignInByName
from helpdesk.clock import database_now
from helpdesk.errors import DomainError, InvalidInput, NotAllowed, NotFound
from helpdesk.pages import signed_in
from reminders.selectors import reminder_panel
from tickets import selectors, services
from tickets.forms import (
    AssignForm,
    BlockForm,
    CancelReminderForm,
    EditForm,
    FilterForm,
    NewTicketForm,
    NoteForm,
    ReminderForm,
    ReplyForm,
    StyledForm,
    TransitionForm,
    UnblockForm,
)
from tickets.messages import history_entry
from tickets.models import Ticket
from tickets.selectors import Viewer
from tickets.states import NOTE_REQUIRED, TRANSITIONS, EventKind, Status

PAGE_SIZE = 25

# What the button of each step of the lifecycle says.
STEP_LABELS: Final = {
    EventKind.STARTED: _("Start work"),
    EventKind.RESOLVED: _("Resolve"),
    EventKind.CLOSED: _("Close"),
    EventKind.REOPENED: _("Reopen"),
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do on a ticket's page: what is sent, who does it, what is said afterwards."""

    form: Callable[..., StyledForm]
    service: Callable[..., Any]
    done: Promise
    # Refused before the form is read: its errors, too, would tell a customer of what is not for them.
    staff_only: bool = True


ACTIONS: Final[dict[str, Action]] = {
    "reply": Action(
        ReplyForm, services.reply_to_ticket, _("Your reply was added."), staff_only=False
    ),
    "note": Action(NoteForm, services.add_internal_note, _("The internal note was added.")),
    "assign": Action(AssignForm, services.assign_ticket, _("The assignment was changed.")),
    "edit": Action(EditForm, services.edit_ticket, _("The ticket was changed.")),
    "transition": Action(TransitionForm, services.transition_ticket, _("The status was changed.")),
    "reminder": Action(ReminderForm, services.schedule_reminder, _("The reminder was set.")),
    "cancel-reminder": Action(
        CancelReminderForm,
        partial(services.schedule_reminder, minutes=None),
        _("The reminder was cancelled."),
    ),
    "block": Action(BlockForm, services.add_blocker, _("The blocker was added.")),
    "unblock": Action(UnblockForm, services.remove_blocker, _("The blocker was removed.")),
}


class SignIn(LoginView):
    """The page, with the same limits as the API's tokens."""

    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        for throttle in (SignInByAddress(), SignInByName()):
            if not throttle.allow_request(request, self):
                form = self.get_form()
                answer = self.render_to_response(
                    self.get_context_data(form=form, throttled=True), status=429
                )
                answer["Retry-After"] = str(int(throttle.wait() or 0) + 1)
                return answer
        return super().post(request, *args, **kwargs)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """To the first of the person's teams."""
    memberships = selectors.memberships(user_id=signed_in(request).pk)
    if not memberships:
        return render(request, "tickets/no_team.html")
    return redirect("tickets", slug=memberships[0].team.slug)


@require_safe
def ticket_list(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = selectors.viewer(user=signed_in(request), slug=slug)
    form = FilterForm(request.GET, viewer=viewer)
    form.is_valid()
    now = database_now()
    tickets = selectors.ticket_list(viewer=viewer, wanted=form.wanted, now=now)
    page = Paginator(tickets, PAGE_SIZE).get_page(request.GET.get("page"))
    query = request.GET.copy()
    query.pop("page", None)
    return render(
        request,
        "tickets/list.html",
        {
            "viewer": viewer,
            "form": form,
            "page": page,
            "query": query.urlencode(),
            "filtered": any(form.cleaned_data.values()),
            "now": now,
        },
    )


@require_http_methods(["GET", "POST"])
def new_ticket(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = selectors.viewer(user=signed_in(request), slug=slug)
    form = NewTicketForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                ticket = services.create_ticket(
                    team_id=viewer.team.pk, actor_id=viewer.user.pk, **form.cleaned_data
                )
            except InvalidInput as error:
                _show_at_fields(form, error)
            else:
                messages.success(request, _("Your ticket was opened."))
                return redirect("ticket", slug=slug, number=ticket.number)
    return render(request, "tickets/new.html", {"viewer": viewer, "form": form}, status=status)


@require_safe
def ticket_page(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    viewer = selectors.viewer(user=signed_in(request), slug=slug)
    return _show_ticket(request, viewer, number)


@require_http_methods(["GET", "POST"])
def ticket_action(request: HttpRequest, slug: str, number: int, action: str) -> HttpResponse:
    """Do it and show the ticket again; if refused, show the fresh ticket with what was typed."""
    if action not in ACTIONS:
        raise NotFound
    if request.method == "GET":  # Back from signing in.
        return redirect("ticket", slug=slug, number=number)
    viewer = selectors.viewer(user=signed_in(request), slug=slug)
    ticket = selectors.ticket_page(viewer=viewer, number=number)
    what = ACTIONS[action]
    if what.staff_only and not viewer.is_staff:
        raise NotAllowed
    form = what.form(request.POST, viewer=viewer)
    refusal: DomainError = InvalidInput()
    if form.is_valid():
        try:
            what.service(
                team_id=viewer.team.pk,
                ticket_id=ticket.pk,
                actor_id=viewer.user.pk,
                **form.cleaned_data,
            )
        except (NotFound, NotAllowed):
            raise
        except InvalidInput as error:
            _show_at_fields(form, error)
        except DomainError as error:
            form.add_error(None, str(error))
            refusal = error
        else:
            messages.success(request, str(what.done))
            return redirect("ticket", slug=slug, number=number)
    return _show_ticket(request, viewer, number, refused={action: form}, refusal=refusal)


def _show_ticket(
    request: HttpRequest,
    viewer: Viewer,
    number: int,
    *,
    refused: Mapping[str, StyledForm] | None = None,
    refusal: DomainError | None = None,
) -> HttpResponse:
    refused = refused or {}
    ticket = selectors.ticket_page(viewer=viewer, number=number)
    forms = {**_forms(viewer, ticket), **refused}
    context: dict[str, Any] = {
        "viewer": viewer,
        "ticket": ticket,
        "refusal": refusal,
        "problems": [problem for form in refused.values() for problem in _problems(form)]
        if isinstance(refusal, InvalidInput)
        else [],
        "comments": selectors.conversation(viewer=viewer, ticket=ticket),
        "history": [
            history_entry(event, for_staff=viewer.is_staff)
            for event in selectors.events(viewer=viewer, ticket=ticket)
        ],
        # Template names have no dashes.
        "forms": {name.replace("-", "_"): form for name, form in forms.items()},
    }
    if viewer.is_staff:
        steps = _steps(ticket, refused)
        context |= {
            "panel": reminder_panel(ticket=ticket, now=database_now()),
            "waits_for": selectors.waits_for(ticket=ticket),
            "blocks": selectors.blocks(ticket=ticket),
            "steps": steps,
            "stranded_note": _stranded_note(steps, refused),
        }
    status = refusal.status if refusal else 200
    return render(request, "tickets/ticket.html", context, status=status)


def _forms(viewer: Viewer, ticket: Ticket) -> dict[str, StyledForm]:
    """Empty forms for what this person may do on this ticket."""
    if ticket.status == Status.CLOSED:
        return {}
    forms: dict[str, StyledForm] = {"reply": ReplyForm()}
    if viewer.is_staff:
        forms |= {
            "note": NoteForm(),
            "assign": AssignForm(viewer=viewer, initial={"membership_id": ticket.assignee_id}),
            "edit": EditForm(
                initial={
                    "title": ticket.title,
                    "description": ticket.description,
                    "priority": ticket.priority,
                }
            ),
        }
    if viewer.is_staff and ticket.is_active:
        forms |= {"reminder": ReminderForm(), "block": BlockForm()}
    return forms


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the lifecycle that is possible now."""

    to: str
    label: str
    form: StyledForm
    needs_note: bool


def _steps(ticket: Ticket, refused: Mapping[str, StyledForm]) -> list[Step]:
    steps = []
    for (before, to), kind in TRANSITIONS.items():
        if before == ticket.status:
            form = refused.get("transition")
            if form is None or form.data.get("to") != to:
                form = TransitionForm()
            steps.append(Step(to.value, str(STEP_LABELS[kind]), form, kind in NOTE_REQUIRED))
    return steps


def _stranded_note(steps: Sequence[Step], refused: Mapping[str, StyledForm]) -> str:
    """The note of a step that is no longer possible: it has no form to be kept in, and is not lost all the same."""
    form = refused.get("transition")
    if form is None or any(step.form is form for step in steps):
        return ""
    return str(form.data.get("note", ""))


def _show_at_fields(form: StyledForm, error: InvalidInput) -> None:
    """A service's field errors, shown where they belong; all others above the form."""
    for field, message in error.data.get("errors", {}).items():
        form.add_error(field if field in form.fields else None, str(message))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing the alert at the top names. `field` is empty where nobody sees one to go to."""

    message: str
    field: BoundField | None = None


def _problems(form: StyledForm) -> list[Problem]:
    """What is wrong with the input. The page is long, and its form may be far from where a person looks."""
    return [
        Problem(
            str(message),
            form[name] if name in form.fields and not form[name].is_hidden else None,
        )
        for name, said in form.errors.items()
        for message in said
    ]
