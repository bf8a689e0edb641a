"""`make run`: one command that starts everything, says what to do when it cannot, and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from helpdesk.local.data import CHECKOUT
from helpdesk.local.servers import free_port

pytestmark = [pytest.mark.stack, pytest.mark.timeout(180)]


@contextmanager
def running(folder: Path, **env: str) -> Iterator["subprocess.Popen[str]"]:
    """`make run` without make, on a data folder of its own, marked so that all its processes can be found."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DJANGO_SETTINGS_MODULE")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "helpdesk.local", "run"],
        cwd=CHECKOUT,
        env={**inherited, "HELPDESK_DATA": str(folder), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def read_until(process: "subprocess.Popen[str]", text: str) -> str:
    """What it printed up to the line with this text."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(f"ended without {text!r}:\n{said}")


def processes_of(folder: Path) -> set[str]:
    """The command lines of all processes that name the folder in environment or arguments, or work in it."""
    found = set()
    mark = str(folder).encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            environment = (path / "environ").read_bytes()
            # A server may have overwritten both with a title of its own.
            if mark in command + environment + os.fsencode((path / "cwd").readlink()):
                found.add(command.replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def beside(folder: Path) -> str:
    """The teams and the debug setting, asked by a command on the same data while the helpdesk runs."""
    code = (
        "from django.conf import settings; from tickets.models import Team; "
        "print([team.slug for team in Team.objects.all()], f'{settings.DEBUG=}')"
    )
    done = subprocess.run(
        [
            *[sys.executable, "-m", "helpdesk.local", "with-servers", f"--data={folder}", "--"],
            *[sys.executable, "manage.py", "shell", "-v0", "-c", code],
        ],
        cwd=CHECKOUT,
        env={
            name: value
            for name, value in os.environ.items()
            if name not in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "DEBUG")
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_it_runs_says_where_keeps_the_data_and_leaves_nothing_behind(tmp_path: Path) -> None:
    port = str(free_port())
    with running(tmp_path, PORT=port) as first:
        said = read_until(first, "Stop it with Ctrl-C")
        assert f"http://localhost:{port}/" in said
        assert "customer1" in said
        assert urlopen(f"http://localhost:{port}/", timeout=20).status == 200
        names = " ".join(processes_of(tmp_path))
        for part in ("gunicorn", "helpdesk worker", "helpdesk beat", "valkey"):
            assert part in names

        with running(tmp_path, PORT=str(free_port())) as second:
            assert "in use by another run" in read_until(second, "HELPDESK_DATA")
            assert second.wait(30) == 1

        told = beside(tmp_path)
        assert "demo" in told
        assert "settings.DEBUG=True" in told

        first.send_signal(signal.SIGTERM)
        assert read_until(first, "stopped")
        assert first.wait(60) == 0
    assert processes_of(tmp_path) == set()

    with running(tmp_path, PORT=port) as again:
        said = read_until(again, "Stop it with Ctrl-C")
        assert "already" in said
        again.send_signal(signal.SIGINT)
        read_until(again, "stopped")
        assert again.wait(60) == 0
    assert processes_of(tmp_path) == set()


def test_a_taken_port_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with running(tmp_path, PORT=str(port)) as process:
            said = process.communicate(timeout=30)[0]

    assert process.returncode == 1
    assert said == (
        f"Port {port} cannot be used (Address already in use). "
        f"Stop what uses it or choose another: make run PORT={port + 1}\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_a_port_that_is_none_is_one_line_too(tmp_path: Path, port: str) -> None:
    with running(tmp_path, PORT=port) as process:
        said = process.communicate(timeout=30)[0]

    assert process.returncode == 1
    assert len(said.splitlines()) == 1


TELL = "import os; print('ready', os.getpid(), flush=True); "
SUPERVISE = """
import sys
from helpdesk.local.run import Process, Supervisor, CannotRun
children = [Process(name, [sys.executable, "-c", code]) for name, code in zip(sys.argv[1::2], sys.argv[2::2])]
try:
    Supervisor(children, {}).run()
except CannotRun as error:
    sys.exit(str(error))
"""


def supervised(*children: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, *children],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_when_one_child_dies_the_others_are_stopped_and_it_says_which() -> None:
    process = supervised(
        "stays", TELL + "import signal; signal.pause()", "goes", "raise SystemExit(3)"
    )
    said = process.communicate(timeout=60)[0]

    assert process.returncode == 1
    assert "goes has ended with status 3." in said


def test_children_that_do_not_listen_are_ended_by_the_second_signal() -> None:
    deaf = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        + TELL
        + "\nwhile True: signal.pause()"
    )
    with supervised("deaf", deaf, "deafer", deaf) as process:
        pids = [int(read_until(process, "ready").split()[-1]) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0  # Well before the time a patient end would take.

    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def with_servers(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """The command, with servers that are named and so need not be started."""
    named = {"DATABASE_URL": "postgres://none", "REDIS_URL": "redis://none", "SECRET_KEY": "none"}
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "helpdesk.local",
            "with-servers",
            f"--data={folder}",
            "--",
            *command,
        ],
        cwd=CHECKOUT,
        env={**os.environ, **named},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 128 + signal.SIGKILL)]
)
def test_a_command_with_servers_ends_as_it_would_alone(
    tmp_path: Path, script: str, status: int
) -> None:
    assert with_servers(tmp_path, "sh", "-c", script).returncode == status


def test_a_command_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    done = with_servers(tmp_path, "no-such-command")

    assert done.returncode == 1
    assert done.stderr == "no-such-command cannot be run (No such file or directory).\n"
