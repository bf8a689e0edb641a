"""Addresses of teams and tickets, as pages and in the API."""

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.urls import path
from django.views.i18n import set_language

from tickets import views
from tickets.api.accounts import MeView, TokenView
from tickets.api.conversation import CommentsView, EventsView, LinksView, LinkView
from tickets.api.members import MembersView, MemberView
from tickets.api.tickets import (
    AssignView,
    OneTicketView,
    ScheduleView,
    TicketsView,
    TransitionView,
)

urlpatterns = [
    path("sign-in/", views.SignIn.as_view(), name="login"),
    path("sign-out/", LogoutView.as_view(), name="logout"),
    path("language/", login_not_required(set_language), name="set_language"),
    path("", views.home, name="home"),
    path("t/<slug:slug>/tickets/", views.ticket_list, name="tickets"),
    path("t/<slug:slug>/tickets/new/", views.new_ticket, name="new-ticket"),
    path("t/<slug:slug>/tickets/<row:number>/", views.ticket_page, name="ticket"),
    path(
        "t/<slug:slug>/tickets/<row:number>/<slug:action>/",
        views.ticket_action,
        name="ticket-action",
    ),
]

# Below /api/v1/. A team goes by its slug, a ticket by its number there.
_TICKET = "teams/<slug:team>/tickets/<row:number>/"

api_patterns = [
    path("auth/token/", TokenView.as_view()),
    path("me/", MeView.as_view()),
    path("teams/<slug:team>/members/", MembersView.as_view()),
    path("teams/<slug:team>/members/<row:member_id>/", MemberView.as_view()),
    path("teams/<slug:team>/tickets/", TicketsView.as_view()),
    path(_TICKET, OneTicketView.as_view()),
    path(f"{_TICKET}schedule/", ScheduleView.as_view()),
    path(f"{_TICKET}transition/", TransitionView.as_view()),
    path(f"{_TICKET}assign/", AssignView.as_view()),
    path(f"{_TICKET}comments/", CommentsView.as_view()),
    path(f"{_TICKET}events/", EventsView.as_view()),
    path(f"{_TICKET}links/", LinksView.as_view()),
    path(f"{_TICKET}links/<row:blocker>/", LinkView.as_view()),
]
