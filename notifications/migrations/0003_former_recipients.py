"""People who were told and have left or lost their role since: the history of memberships begins after that.

What their notices say of them is written into it, so that the audit does not take them for strangers.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0002_notice_by_creation"),
        ("tickets", "0003_membership_history"),
    ]

    operations = [
        migrations.RunSQL(
            sql="""
                INSERT INTO tickets_membershipchange (team_id, user_id, role, at)
                SELECT told.team_id, told.user_id, told.role, told.at
                FROM (
                    SELECT ticket.team_id, notice.user_id, min(notice.created_at) AS at,
                           CASE WHEN bool_or(notice.why = 'TEAM_ADMIN') THEN 'ADMIN' ELSE 'AGENT' END AS role
                    FROM notifications_remindernotification AS notice
                    JOIN tickets_ticket AS ticket ON ticket.id = notice.ticket_id
                    GROUP BY ticket.team_id, notice.user_id
                ) AS told
                WHERE NOT EXISTS (
                    SELECT FROM tickets_membershipchange AS known
                    WHERE known.team_id = told.team_id AND known.user_id = told.user_id
                      AND known.role IN ('ADMIN', told.role))
            """,
            reverse_sql=migrations.RunSQL.noop,
        )
    ]
