"""Who is in a team."""

from rest_framework.request import Request
from rest_framework.response import Response

from helpdesk.api import pages
from helpdesk.api.pages import PageQuery
from helpdesk.api.schema import operation
from helpdesk.api.views import fields_named
from tickets import selectors, services
from tickets.api.shared import TeamView
from tickets.serializers import MemberPage, MemberSerializer, NewMemberInput, RoleInput


class MembersView(TeamView):
    @operation(
        "list_members",
        "Members of the team",
        tag="members",
        query=PageQuery,
        answers=MemberPage,
        refuses=[403, 404],
        description="For staff. Longest members first.",
    )
    def get(self, request: Request, team: str) -> Response:
        self.require_staff()
        query = self.query(PageQuery)
        found = selectors.members(
            team_id=self.viewer.team.pk,
            after=pages.before(query.get("cursor")),
            limit=query["limit"] + 1,
        )
        return pages.answer_by_id(request, found, query["limit"], MemberSerializer)

    @operation(
        "add_member",
        "Add a member",
        tag="members",
        takes=NewMemberInput,
        answers=MemberSerializer,
        status=201,
        refuses=[403, 404],
        creates=True,
        description="For administrators.",
    )
    def post(self, request: Request, team: str) -> Response:
        self.require_admin()
        values = self.body(NewMemberInput)
        user_id = selectors.active_user_id(username=values["username"])
        with fields_named(user="username"):
            return self.create(
                services.add_member,
                lambda member: dict(MemberSerializer(member).data),
                user_id=user_id,
                role=values["role"],
            )


class MemberView(TeamView):
    @operation(
        "change_role",
        "Change a member's role",
        tag="members",
        takes=RoleInput,
        answers=MemberSerializer,
        refuses=[403, 404, 409],
        description="For administrators. Who becomes a customer loses the tickets assigned to them. "
        "The team keeps at least one administrator.",
    )
    def patch(self, request: Request, team: str, member_id: int) -> Response:
        self.require_admin()
        values = self.body(RoleInput)
        member = services.change_role(**self.common, membership_id=member_id, role=values["role"])
        return Response(MemberSerializer(member).data)

    @operation(
        "remove_member",
        "Remove a member",
        tag="members",
        answers=None,
        status=204,
        refuses=[403, 404, 409, 429],
        description="For administrators. Their tickets become unassigned. The team keeps at least one "
        "administrator.",
    )
    def delete(self, request: Request, team: str, member_id: int) -> Response:
        services.remove_member(**self.common, membership_id=member_id)
        return Response(status=204)
