"""A long history, made by SQL alone, in which everything agrees with everything: evidence, checksums, versions, dates."""

from dataclasses import dataclass

from django.db import connection

from tests.factories import MembershipFactory, TeamFactory
from tickets.models import Membership
from tickets.states import Role

# Six events and two tasks to a ticket: opened, reminder set anew (ends the first task), sent, started,
# resolved, closed. One ticket after the other over a year, the last one two days ago.
_ISO = """to_char(({}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"+00:00"')"""
_SOURCE = """
CREATE TEMPORARY TABLE stored AS
SELECT n AS id, team.team_id, team.agent_id, team.agent_user_id, team.customer_id,
       (n - 1) / %(teams)s + 1 AS number,
       date_trunc('second', now()) - interval '367 days'
           + n * (interval '365 days' / %(tickets)s::double precision) AS raw
FROM generate_series(1, %(tickets)s) AS n
JOIN unnest(%(team_ids)s::bigint[], %(agent_ids)s::bigint[], %(agent_user_ids)s::bigint[],
            %(customer_ids)s::bigint[])
     WITH ORDINALITY AS team(team_id, agent_id, agent_user_id, customer_id, place)
  ON team.place = (n - 1) %% %(teams)s + 1;
ALTER TABLE stored ADD COLUMN at timestamptz;
UPDATE stored SET at = date_trunc('second', raw);
ANALYZE stored
"""
_TICKETS = """
INSERT INTO tickets_ticket
    (id, team_id, number, title, description, status, priority, creator_id, assignee_id, version,
     reminder_revision, due_at, reminder_note, resolved_at, closed_at, created_at, updated_at)
SELECT id, team_id, number, 'Ticket ' || number, 'Stored.', 'CLOSED', 'NORMAL', customer_id, agent_id, 5,
       3, NULL, '', at + interval '4 hours', at + interval '5 hours', at, at + interval '5 hours'
FROM stored ORDER BY id
"""
_EVENTS = f"""
INSERT INTO tickets_ticketevent
    (id, ticket_id, kind, version, reminder_revision, actor_id, actor_name, reason, data, created_at)
SELECT (stored.id - 1) * 6 + step.version + 1, stored.id, step.kind, step.version, step.revision, NULL,
       'system', '',
       CASE step.kind WHEN 'TIMEOUT_REMINDED' THEN jsonb_build_object(
           'due_at', {_ISO.format("stored.at + interval '2 hours'")}, 'late_ms', 1000,
           'recipients', jsonb_build_array(jsonb_build_object(
               'user', agent_user_id, 'name', 'Agent', 'why', 'ASSIGNEE')))
       ELSE '{{}}' END,
       stored.at + step.after
FROM stored CROSS JOIN (VALUES
    (0, 'CREATED', 0, interval '0'),
    (1, 'REMINDER_SCHEDULED', 1, interval '1 hour'),
    (2, 'TIMEOUT_REMINDED', 1, interval '2 hours 1 second'),
    (3, 'STARTED', 1, interval '3 hours'),
    (4, 'RESOLVED', 2, interval '4 hours'),
    (5, 'CLOSED', 3, interval '5 hours')) AS step(version, kind, revision, after)
ORDER BY stored.id, step.version
"""
_NOTICES = """
INSERT INTO notifications_remindernotification
    (id, ticket_id, user_id, reminder_revision, why, note, due_at, late_ms, created_at, read_at, handled_at)
SELECT id, id, agent_user_id, 1, 'ASSIGNEE', '', at + interval '2 hours', 1000,
       at + interval '2 hours 1 second', at + interval '3 hours', at + interval '4 hours'
FROM stored ORDER BY id
"""
# The canonical texts that `reminders.evidence` computes its checksums over.
_SKIPPED = """format(
    '{"outcome":"skipped","planned_revision":0,"reason":"REPLACED","task":%s,"ticket":%s,"ticket_revision":1,"ticket_version":1}',
    id * 2 - 1, id)"""
_FIRED = f"""format(
    '{{"event":[%s,%s,"TIMEOUT_REMINDED",2,1,"%s"],"notices":[[%s,%s,%s,1,"ASSIGNEE","%s","%s"]]}}',
    id * 6 - 3, id, {_ISO.format("at + interval '2 hours 1 second'")}, id, id, agent_user_id,
    {_ISO.format("at + interval '2 hours'")}, {_ISO.format("at + interval '2 hours 1 second'")})"""
_SHA = "'sha256:' || encode(sha256(convert_to({}, 'UTF8')), 'hex')"
_TASKS = f"""
INSERT INTO reminders_task
    (id, team_id, kind, ticket_id, reminder_revision, owner_id, run, status, due_at, available_at,
     attempts, last_error, progress, result_summary, evidence, dispatched_at, created_at, started_at,
     finished_at)
SELECT id * 2 - 1, team_id, 'REMINDER', id, 0, customer_id, 1, 'COMPLETED', at + interval '24 hours',
       at + interval '24 hours', 0, '', 100, 'Skipped.',
       ({_SKIPPED})::jsonb || jsonb_build_object('checksum', {_SHA.format(_SKIPPED)}),
       NULL, at, NULL, at + interval '1 hour'
FROM stored
UNION ALL
SELECT id * 2, team_id, 'REMINDER', id, 1, customer_id, 1, 'COMPLETED', at + interval '2 hours',
       at + interval '2 hours', 0, '', 100, 'Sent to 1 person.',
       jsonb_build_object(
           'outcome', 'fired', 'event', id * 6 - 3, 'notifications', jsonb_build_array(id),
           'ticket_version', 2, 'planned', jsonb_build_array(agent_user_id), 'created', 1,
           'due_at', {_ISO.format("at + interval '2 hours'")}, 'late_ms', 1000,
           'checksum', {_SHA.format(_FIRED)}),
       at + interval '1 hour 59 minutes', at + interval '1 hour', at + interval '2 hours 1 second',
       at + interval '2 hours 1 second'
FROM stored ORDER BY 1
"""
_TRANSITIONS = """
INSERT INTO reminders_tasktransition
    (task_id, run, execution_id, from_status, to_status, cause, detail, actor_id, at)
SELECT stored.id * 2 - step.first, 1, NULL, step.was, step.status, step.cause, step.detail, NULL,
       stored.at + step.after
FROM stored CROSS JOIN (VALUES
    (1, NULL, 'WAITING', 'PLANNED', '', interval '0'),
    (1, 'WAITING', 'COMPLETED', 'SKIPPED', 'REPLACED', interval '1 hour'),
    (0, NULL, 'WAITING', 'PLANNED', '', interval '1 hour'),
    (0, 'WAITING', 'RUNNING', 'CLAIMED', '', interval '2 hours'),
    (0, 'RUNNING', 'COMPLETED', 'FIRED', '', interval '2 hours 1 second')
) AS step(first, was, status, cause, detail, after)
ORDER BY stored.at + step.after
"""
_TABLES = (
    "tickets_ticket",
    "tickets_ticketevent",
    "notifications_remindernotification",
    "reminders_task",
)


@dataclass(frozen=True, slots=True)
class Staff:
    """A team's people: who opens tickets and who answers them."""

    agent: Membership
    customer: Membership


def make_teams(count: int) -> list[Staff]:
    """Teams with an administrator, an agent and a customer each."""
    staff = []
    for _number in range(count):
        team = TeamFactory()
        MembershipFactory(team=team, role=Role.ADMIN)
        staff.append(
            Staff(
                agent=MembershipFactory(team=team, role=Role.AGENT),
                customer=MembershipFactory(team=team, role=Role.CUSTOMER),
            )
        )
    return staff


def make_history(staff: list[Staff], *, tasks: int) -> None:
    """Closed tickets of these teams with so many completed tasks, two for each. Needs empty tables, and VACUUM ANALYZE after."""
    with connection.cursor() as cursor:
        cursor.execute(
            _SOURCE,
            {
                "tickets": tasks // 2,
                "teams": len(staff),
                "team_ids": [each.agent.team_id for each in staff],
                "agent_ids": [each.agent.pk for each in staff],
                "agent_user_ids": [each.agent.user_id for each in staff],
                "customer_ids": [each.customer.user_id for each in staff],
            },
        )
        # All refer to what is there; checking each of millions of rows would take minutes. Only a
        # superuser of the database may leave that out.
        cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        (may_leave_out,) = cursor.fetchone()
        if may_leave_out:
            cursor.execute("SET session_replication_role = replica")
        for statement in (_TICKETS, _EVENTS, _NOTICES, _TASKS, _TRANSITIONS):
            cursor.execute(statement)
        if may_leave_out:
            cursor.execute("SET session_replication_role = DEFAULT")
        for table in _TABLES:
            cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"
            )
        cursor.execute(
            "UPDATE tickets_team SET last_ticket_number ="
            " (SELECT coalesce(max(number), 0) FROM stored WHERE team_id = tickets_team.id)"
        )
        cursor.execute("DROP TABLE stored")
