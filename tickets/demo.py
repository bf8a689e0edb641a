"""Made-up people and tickets for somebody who looks at the helpdesk for the first time.

The content is data, told as stories; `create` plays them through the same services that pages use, so
their histories, versions and reminders are as true as any.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.hashers import make_password

from tickets import services
from tickets.models import Membership, Team, Ticket, TicketLink, User
from tickets.states import Priority, Role

PASSWORD: Final = "demo"  # noqa: S105  public on purpose; the command refuses to use it in production


@dataclass(frozen=True, slots=True)
class Person:
    username: str
    first_name: str
    last_name: str
    time_zone: str
    about: str
    site_admin: bool = False


@dataclass(frozen=True, slots=True)
class DemoTeam:
    """The first member administers the team and lets the others in."""

    slug: str
    name: str
    members: tuple[tuple[str, Role], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """Somebody does something to the ticket: a call of a service, but for the ids and the version."""

    by: str
    service: Callable[..., Ticket]
    arguments: Mapping[str, object]


def reply(by: str, text: str) -> Step:
    return Step(by, services.reply_to_ticket, {"body": text})


def note(by: str, text: str) -> Step:
    return Step(by, services.add_internal_note, {"body": text})


def assign(by: str, to: str | None) -> Step:
    return Step(by, services.assign_ticket, {"membership_id": to})


def retitle(by: str, title: str) -> Step:
    return Step(by, services.edit_ticket, {"title": title})


def prioritise(by: str, priority: Priority) -> Step:
    return Step(by, services.edit_ticket, {"priority": priority})


def start(by: str) -> Step:
    return Step(by, services.start_ticket, {})


def resolve(by: str, note: str) -> Step:
    return Step(by, services.resolve_ticket, {"note": note})


def close(by: str) -> Step:
    return Step(by, services.close_ticket, {})


def reopen(by: str, note: str) -> Step:
    return Step(by, services.reopen_ticket, {"note": note})


def remind(by: str, minutes: int, note: str = "") -> Step:
    return Step(by, services.schedule_reminder, {"minutes": minutes, "note": note})


def cancel_reminder(by: str) -> Step:
    return Step(by, services.schedule_reminder, {"minutes": None})


def wait_for(by: str, title: str) -> Step:
    """Until the ticket of an earlier story of the same team is resolved."""
    return Step(by, services.add_blocker, {"number": title})


def wait_no_longer_for(by: str, title: str) -> Step:
    return Step(by, services.remove_blocker, {"link_id": title})


@dataclass(frozen=True, slots=True)
class Story:
    """A ticket as its creator wrote it, and what has happened since."""

    by: str
    title: str
    text: str
    steps: tuple[Step, ...] = ()
    priority: Priority = Priority.NORMAL
    team: str = "demo"


ADMIN, AGENT1, AGENT2 = "admin", "agent1", "agent2"
CUSTOMER1, CUSTOMER2 = "customer1", "customer2"

HOUR: Final = 60
DAY: Final = 24 * HOUR

PEOPLE: Final = (
    Person(
        ADMIN,
        "Maya",
        "Lindqvist",
        "Europe/Stockholm",
        "administrator, also of the site",
        site_admin=True,
    ),
    Person(AGENT1, "Tom", "Becker", "Europe/Berlin", "agent"),
    # A Chinese name is not put together from parts with a space between them.
    Person(AGENT2, "陈静", "", "Asia/Shanghai", "agent in both teams"),
    Person(CUSTOMER1, "Priya", "Raman", "Asia/Kolkata", "customer of both teams"),
    Person(CUSTOMER2, "林晓雯", "", "Asia/Shanghai", "customer"),
)

# People land in the first of their teams by name, which should be the one with the most to see.
TEAMS: Final = (
    DemoTeam(
        "demo",
        "Demo helpdesk",
        (
            (ADMIN, Role.ADMIN),
            (AGENT1, Role.AGENT),
            (AGENT2, Role.AGENT),
            (CUSTOMER1, Role.CUSTOMER),
            (CUSTOMER2, Role.CUSTOMER),
        ),
    ),
    DemoTeam(
        "billing",
        "Payments and billing",
        ((ADMIN, Role.ADMIN), (AGENT2, Role.AGENT), (CUSTOMER1, Role.CUSTOMER)),
    ),
)

# The list shows the last activity first, so what a newcomer should see stands at the end.
STORIES: Final = (
    # --- Closed ---------------------------------------------------------------------------------
    Story(
        CUSTOMER1,
        "How do I change my e-mail address?",
        "My address changes with my surname next week. Where do I update it?",
        (
            assign(AGENT1, AGENT1),
            start(AGENT1),
            reply(
                AGENT1, "Under Profile, then Contact. You get a confirmation at the new address."
            ),
            reply(CUSTOMER1, "Found it, thank you!"),
            resolve(AGENT1, "Explained where it is; the customer has changed it."),
            close(AGENT1),
        ),
        Priority.LOW,
    ),
    Story(
        CUSTOMER2,
        "导出的报表打开是乱码",
        "用 Excel 打开导出的 CSV，中文全部是乱码，英文和数字正常。",
        (
            assign(AGENT2, AGENT2),
            start(AGENT2),
            reply(AGENT2, "请在导出时选择“UTF-8（带 BOM）”，Excel 就能正确识别。"),
            reply(CUSTOMER2, "试过了，可以了，谢谢！"),
            resolve(AGENT2, "导出时改选带 BOM 的 UTF-8 后正常。"),
            close(AGENT2),
        ),
    ),
    Story(
        CUSTOMER1,
        "Laptop will not charge in the dock",
        "Since this morning the dock shows the screen but does not charge the laptop.",
        (
            assign(ADMIN, AGENT1),
            start(AGENT1),
            note(AGENT1, "Same batch as the three docks we sent back in spring."),
            reply(AGENT1, "That dock has a known fault. A new one is at the front desk for you."),
            resolve(AGENT1, "Dock replaced."),
            close(ADMIN),
        ),
        Priority.HIGH,
    ),
    Story(
        AGENT1,
        "Meeting room 2: projector shows a pink picture",
        "Reported by phone. Everything on the screen is tinted pink, from every laptop.",
        (
            start(AGENT1),
            resolve(AGENT1, "A bent pin in the HDMI cable; cable replaced."),
            close(AGENT1),
        ),
        Priority.LOW,
    ),
    Story(
        CUSTOMER1,
        "Please remove my old phone from two-factor sign-in",
        "I have a new phone and still get the codes on the old one.",
        (
            assign(AGENT2, AGENT2),
            start(AGENT2),
            note(AGENT2, "Identity checked by video call."),
            resolve(AGENT2, "Old device removed after the identity check."),
            close(AGENT2),
        ),
    ),
    # --- Resolved -------------------------------------------------------------------------------
    Story(
        CUSTOMER1,
        "Shared calendar is empty on my phone",
        "The team calendar is fine in the browser and empty on my phone.",
        (
            assign(AGENT1, AGENT1),
            start(AGENT1),
            reply(AGENT1, "Please remove the account on the phone and add it again."),
            reply(CUSTOMER1, "It is filling up now."),
            resolve(AGENT1, "Adding the account again brought the calendar back."),
        ),
    ),
    Story(
        CUSTOMER2,
        "会议室预订后没有收到确认邮件",
        "昨天预订了三楼会议室，系统显示成功，但是没有收到邮件。",
        (
            assign(ADMIN, AGENT2),
            start(AGENT2),
            remind(AGENT2, 4 * HOUR, "看看邮件网关的日志"),
            note(AGENT2, "邮件被归到垃圾箱，发件域名缺少 SPF 记录，已补上。"),
            resolve(AGENT2, "已补充 SPF 记录，测试邮件可以正常收到。"),
        ),
    ),
    Story(
        CUSTOMER1,
        "Search finds nothing since the update",
        "Whatever I search for, the result is empty. It worked last week.",
        (
            assign(AGENT1, AGENT1),
            start(AGENT1),
            note(AGENT1, "The index had not been rebuilt after the update."),
            resolve(AGENT1, "Index rebuilt; search works again."),
        ),
        Priority.HIGH,
    ),
    Story(
        CUSTOMER1,
        "Invoice shows the wrong company address",
        "The street on the last invoice is our old one.",
        (
            assign(ADMIN, ADMIN),
            start(ADMIN),
            resolve(ADMIN, "Address corrected and the invoice sent again."),
        ),
    ),
    # --- Reopened -------------------------------------------------------------------------------
    Story(
        CUSTOMER1,
        "VPN drops every twenty minutes",
        "The connection is lost about every twenty minutes, at home and in the office.",
        (
            assign(AGENT1, AGENT1),
            start(AGENT1),
            reply(AGENT1, "We have raised the idle limit. Please tell us how it goes."),
            resolve(AGENT1, "Idle limit raised from 20 to 480 minutes."),
            reply(CUSTOMER1, "Sorry, it still drops, only less often."),
            reopen(AGENT1, "The customer still loses the connection."),
            note(AGENT1, "Next: compare the lease time of the home router."),
        ),
        Priority.HIGH,
    ),
    Story(
        CUSTOMER2,
        "手机端无法上传超过 10 MB 的附件",
        "上传大一点的附件就提示“网络错误”，电脑上没有问题。",
        (
            assign(AGENT2, AGENT2),
            start(AGENT2),
            resolve(AGENT2, "上传上限已调到 50 MB。"),
            reply(CUSTOMER2, "20 MB 的还是不行。"),
            reopen(AGENT2, "客户反馈 20 MB 的附件仍然失败。"),
            start(AGENT2),
            remind(AGENT2, 2 * HOUR, "等网关配置生效后再试一次"),
        ),
    ),
    # --- In progress ----------------------------------------------------------------------------
    Story(
        CUSTOMER1,
        "New colleague starts on Monday: account and laptop",
        "Elena Petrova joins the design team. She needs an account, a laptop and access to the shared drive.",
        (
            assign(ADMIN, AGENT1),
            start(AGENT1),
            reply(AGENT1, "Account and drive are done, the laptop is ordered."),
            remind(AGENT1, 2 * DAY, "Has the laptop arrived?"),
        ),
    ),
    Story(
        CUSTOMER1,
        "Monthly report counts some orders twice",
        "The total for last month is too high by about 40 orders.",
        (
            assign(ADMIN, AGENT1),
            start(AGENT1),
            note(AGENT1, "Orders that were split into two parcels are counted per parcel."),
            prioritise(ADMIN, Priority.HIGH),
            reply(AGENT1, "We have found the cause and are testing a correction."),
        ),
    ),
    Story(
        CUSTOMER2,
        "打印机每次都多打一张空白页",
        "五楼的打印机，不管打印什么，最后都会多出一张空白页。",
        (
            assign(AGENT2, AGENT2),
            start(AGENT2),
            reply(AGENT2, "已经更新驱动，请再打印一份看看。"),
            remind(AGENT2, DAY, "问一下还有没有空白页"),
        ),
        Priority.LOW,
    ),
    Story(
        CUSTOMER1,
        "Wi-Fi is slow on the fourth floor",
        "Calls stutter near the windows; next to the lifts all is well.",
        (
            assign(AGENT1, AGENT1),
            start(AGENT1),
            note(AGENT1, "Measured: the access point at the window side has no link."),
            assign(AGENT1, AGENT2),
            note(AGENT1, "Jing has the keys to that cabinet, so this is hers now."),
        ),
    ),
    Story(
        CUSTOMER1,
        "Please restore a deleted folder",
        "I deleted the folder “Offers 2024” from the shared drive by mistake.",
        (
            assign(AGENT2, AGENT2),
            start(AGENT2),
            reply(
                AGENT2, "The restore from last night's backup is running, it takes about an hour."
            ),
            remind(AGENT2, 70, "The restore should be complete"),
        ),
        Priority.URGENT,
    ),
    Story(
        CUSTOMER1,
        "Web shop: payment page shows an error now and then",
        "About one payment in fifty ends with “Something went wrong”. The second try works.",
        (
            prioritise(ADMIN, Priority.URGENT),
            assign(ADMIN, AGENT1),
            start(AGENT1),
            note(
                AGENT1, "The payment provider times out after 3 seconds. Asked them for their logs."
            ),
            remind(AGENT1, 3 * HOUR, "Call the payment provider"),
            remind(AGENT1, 30, "They promised an answer within half an hour"),
        ),
    ),
    Story(
        CUSTOMER2,
        "新版本里找不到“批量审批”按钮",
        "升级之后，审批列表上方的“批量审批”不见了。",
        (
            assign(ADMIN, AGENT2),
            start(AGENT2),
            reply(AGENT2, "按钮移到了右上角的“更多”菜单里，我们会在下个版本把它放回原处。"),
            cancel_reminder(AGENT2),
            note(AGENT2, "已反馈给产品组，等发布通知，不需要提醒。"),
        ),
    ),
    Story(
        ADMIN,
        "Renew the certificate of the intranet",
        "It runs out at the end of the month.",
        (
            assign(ADMIN, ADMIN),
            start(ADMIN),
            remind(ADMIN, 5 * DAY, "The new certificate must be in place by then"),
        ),
    ),
    # --- Open -----------------------------------------------------------------------------------
    Story(
        CUSTOMER1,
        "Can I have a second monitor?",
        "I compare long tables all day and would like a second monitor.",
        priority=Priority.LOW,
    ),
    Story(
        CUSTOMER1,
        "Keyboard shortcut for a new order?",
        "Is there a shortcut for “New order”? I could not find a list.",
        (reply(AGENT1, "Which system do you use, Windows or macOS?"),),
        Priority.LOW,
    ),
    Story(
        CUSTOMER2,
        "申请开通海外分部的共享盘权限",
        "需要访问新加坡分部的共享盘，主管已经同意。",
        (
            assign(ADMIN, AGENT2),
            note(AGENT2, "等主管的书面确认。"),
            remind(AGENT2, 8 * HOUR, "主管回复了吗？"),
        ),
    ),
    Story(
        CUSTOMER1,
        "System is slow",
        "The list of orders takes ten seconds to open, mostly after lunch.",
        (
            retitle(AGENT1, "List of orders takes ten seconds to open after lunch"),
            assign(ADMIN, AGENT1),
            reply(AGENT1, "Thank you. Does it happen with a filter as well?"),
            wait_for(AGENT1, "Monthly report counts some orders twice"),
            reply(CUSTOMER1, "Yes, with and without."),
            wait_no_longer_for(AGENT1, "Monthly report counts some orders twice"),
            note(AGENT1, "Without a filter the report's query is not involved."),
        ),
    ),
    Story(
        CUSTOMER1,
        "Newsletter arrives twice",
        "Everybody in our office gets each newsletter two times.",
        (
            assign(AGENT2, AGENT2),
            assign(AGENT2, None),
            note(AGENT2, "Marketing's tool; who has access to it?"),
        ),
    ),
    Story(
        CUSTOMER1,
        "Badge does not open the car park",
        "My badge opens every door except the gate of the car park.",
        (assign(ADMIN, AGENT1), remind(AGENT1, 90, "Facility management is back at the desk")),
    ),
    Story(
        CUSTOMER2,
        "夏令时切换后会议时间差了一小时",
        "和欧洲同事的例会，日历上显示的时间晚了一小时。",
        (assign(AGENT2, AGENT2), reply(AGENT2, "请告诉我会议是谁创建的，以及对方所在的城市。")),
        Priority.HIGH,
    ),
    # --- The other team -------------------------------------------------------------------------
    Story(
        CUSTOMER1,
        "Two invoices for one order",
        "Order 20418 was invoiced twice. Which one do we pay?",
        (
            assign(AGENT2, AGENT2),
            start(AGENT2),
            reply(AGENT2, "Please pay the first; you will get a credit note for the second."),
            resolve(AGENT2, "Credit note sent for the second invoice."),
        ),
        Priority.HIGH,
        team="billing",
    ),
    Story(
        CUSTOMER1,
        "Change our payment term to 30 days",
        "Our contract says 30 days, the invoices say 14.",
        (assign(ADMIN, ADMIN), start(ADMIN), remind(ADMIN, DAY, "Legal should have answered")),
        team="billing",
    ),
    Story(
        CUSTOMER1,
        "Need a copy of the March invoice",
        "The tax adviser asks for it and I cannot find the mail.",
        priority=Priority.LOW,
        team="billing",
    ),
    # --- Reminders that a newcomer sees fire: for the administrator and for each agent --------------
    Story(
        CUSTOMER2,
        "支付后订单仍显示未付款",
        "今天上午付了款，银行已经扣款，订单还是“未付款”。",
        (
            assign(ADMIN, AGENT2),
            start(AGENT2),
            wait_for(AGENT2, "Web shop: payment page shows an error now and then"),
            remind(AGENT2, 3, "对账任务应该跑完了，再查一次"),
        ),
        Priority.URGENT,
    ),
    Story(
        CUSTOMER1,
        "Phone line of the front desk is dead",
        "No dial tone since nine o'clock. Visitors cannot reach us.",
        (
            assign(ADMIN, AGENT1),
            start(AGENT1),
            reply(AGENT1, "The provider is resetting the line."),
            remind(AGENT1, 2, "Call the front desk: does the line work again?"),
        ),
        Priority.URGENT,
    ),
    Story(
        CUSTOMER1,
        "Nobody can print in the main office",
        "All print jobs wait in the queue. A paper copy is needed for a signature today.",
        # Nobody is responsible, so the reminder goes to the team's administrators.
        (remind(ADMIN, 1, "Still nobody on it? Then take it yourself"),),
        Priority.URGENT,
    ),
)


def create() -> None:
    """Create the people, their teams and the tickets. For an empty database only."""
    User.objects.bulk_create(
        User(
            username=person.username,
            first_name=person.first_name,
            last_name=person.last_name,
            email=f"{person.username}@example.com",
            time_zone=person.time_zone,
            is_staff=person.site_admin,
            is_superuser=person.site_admin,
            # A hash of its own for each, as everywhere; validators would refuse this password.
            password=make_password(PASSWORD),
        )
        for person in PEOPLE
    )
    users = {user.username: user for user in User.objects.all()}
    players = {team.slug: _Cast(team, users) for team in TEAMS}
    for story in STORIES:
        players[story.team].play(story)


# They add to the conversation and overwrite nothing, so they ask for no version.
_WITHOUT_VERSION: Final = (services.reply_to_ticket, services.add_internal_note)


class _Cast:
    """A team with its members, who act out stories."""

    def __init__(self, team: DemoTeam, users: dict[str, User]) -> None:
        (first, _role), *others = team.members
        self.users = users
        self.team: Team = services.create_team(
            name=team.name, slug=team.slug, admin_id=users[first].pk
        )
        for username, role in others:
            services.add_member(
                team_id=self.team.pk,
                actor_id=users[first].pk,
                user_id=users[username].pk,
                role=role,
            )
        self.members = {
            member.user.username: member
            for member in Membership.objects.select_related("user").filter(team=self.team)
        }

    def play(self, story: Story) -> Ticket:
        ticket = services.create_ticket(
            team_id=self.team.pk,
            actor_id=self.users[story.by].pk,
            title=story.title,
            description=story.text,
            priority=story.priority,
        )
        for step in story.steps:
            ticket = self._take(step, ticket)
        return ticket

    def _take(self, step: Step, ticket: Ticket) -> Ticket:
        arguments = dict(step.arguments)
        if to := arguments.get("membership_id"):
            arguments["membership_id"] = self.members[str(to)].pk
        if title := arguments.get("number"):
            arguments["number"] = Ticket.objects.get(team=self.team, title=title).number
        if title := arguments.get("link_id"):
            arguments["link_id"] = TicketLink.objects.get(ticket=ticket, blocker__title=title).pk
        if step.service not in _WITHOUT_VERSION:
            arguments["version"] = ticket.version
        return step.service(
            team_id=self.team.pk,
            ticket_id=ticket.pk,
            actor_id=self.users[step.by].pk,
            **arguments,
        )
