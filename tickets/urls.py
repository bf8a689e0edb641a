"""Addresses of teams and tickets."""

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path
from django.views.i18n import set_language

from tickets import views

urlpatterns = [
    path("sign-in/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
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
