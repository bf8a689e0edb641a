"""The real thing: web, worker and beat as child processes, a broker that can be killed, the test's database."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from helpdesk.celery import app
from helpdesk.local.servers import Valkey
from tests.broker import use_broker

TIMEOUT = 40.0
CELERY = ("celery", "-A", "helpdesk")

# Short periods, so that losses are noticed within seconds; in the proportions of the defaults.
PACE = {
    "REMINDER_HORIZON": "20",
    "REMINDER_DISPATCH_PERIOD": "0.5",
    "REMINDER_RESEND_AFTER": "1",
    "REMINDER_RECOVERY_PERIOD": "1",
    "REMINDER_SOFT_TIME_LIMIT": "3",
    "REMINDER_HARD_TIME_LIMIT": "4",
    "REMINDER_LEASE": "5",
    "REMINDER_BACKOFF": "0.5",
    "AUDIT_PERIOD": "1",
    "AUDIT_DEBOUNCE": "0.3",
}
# How often somebody may do something has tests of its own; here everybody is one machine in a hurry.
NO_THROTTLES = dict.fromkeys(
    (
        "THROTTLE_SIGN_IN_BY_ADDRESS",
        "THROTTLE_SIGN_IN_BY_NAME",
        "THROTTLE_WRITES_BY_PERSON",
        "THROTTLE_WRITES_BY_ADDRESS",
    ),
    "",
)


def wait_until(condition: Callable[[], Any], what: str, *, within: float = TIMEOUT) -> Any:
    """The condition's first true value. Asks the database again and again, up to a deadline."""
    deadline = monotonic() + within
    while monotonic() < deadline:
        if value := condition():
            return value
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.05)")
    raise AssertionError(f"not within {within:g} s: {what}")


class Stack:
    """Starts, kills and stops the processes; everything they print goes to one log file."""

    def __init__(self, folder: Path) -> None:
        self.broker = Valkey(folder / "valkey")
        self.log = folder / "stack.log"
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []

    def start_broker(self) -> None:
        self.broker.start()
        use_broker(self.broker.url)

    def worker(self, *, concurrency: int = 2) -> "subprocess.Popen[bytes]":
        name = f"worker{len(self._children)}@test"
        return self._start(
            *CELERY,
            "worker",
            "--queues=reminders,dispatch,audit",
            f"--concurrency={concurrency}",
            "--without-gossip",
            "--without-mingle",
            f"--hostname={name}",
        )

    def beat(self) -> "subprocess.Popen[bytes]":
        schedule = self._folder / f"beat{len(self._children)}"
        return self._start(*CELERY, "beat", f"--schedule={schedule}", "--pidfile=")

    def web(self) -> str:
        """The address of a web process, which hears requests from now on: the socket is open before it starts."""
        with socket.create_server(("127.0.0.1", 0), backlog=64) as door:
            self._start(
                "gunicorn",
                "helpdesk.wsgi:application",
                f"--bind=fd://{door.fileno()}",
                "--worker-class=gthread",
                "--threads=4",
                "--no-control-socket",
                pass_fds=[door.fileno()],
                DEBUG="true",
                DATABASE_POOL="true",
                **NO_THROTTLES,
            )
            return f"http://127.0.0.1:{door.getsockname()[1]}"

    def _start(
        self, *command: str, pass_fds: Sequence[int] = (), **settings_: str
    ) -> "subprocess.Popen[bytes]":
        database = settings.DATABASES["default"]
        url = (
            f"postgres://{quote(database['USER'])}:{quote(database['PASSWORD'])}"
            f"@{database['HOST']}:{database['PORT']}/{quote(database['NAME'])}"
        )
        environment = {
            **os.environ,
            **PACE,
            "DATABASE_URL": url,
            "REDIS_URL": self.broker.url,
            "SECRET_KEY": "stack",
            **settings_,
        }
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=settings.BASE_DIR,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        self._children.append(child)
        return child

    @staticmethod
    def kill(child: "subprocess.Popen[bytes]") -> None:
        """SIGKILL to the process and all it has forked: a machine that loses power."""
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    def stop(self) -> None:
        for child in self._children:
            if child.poll() is None:
                self.kill(child)
        self.broker.stop()


@pytest.fixture
def stack(transactional_db: None, tmp_path: Path) -> Iterator[Stack]:
    """A stack with a running broker; the test starts the workers and beats it wants."""
    before = app.conf.broker_url
    stack = Stack(tmp_path)
    stack.start_broker()
    try:
        yield stack
    finally:
        stack.stop()
        use_broker(before)


def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> None:
    """What the processes said, with the failure."""
    if call.excinfo is not None and (stack := getattr(item, "funcargs", {}).get("stack")):
        log = stack.log.read_text(errors="replace")[-8_000:] if stack.log.exists() else ""
        item.add_report_section(call.when, "stack", log)
