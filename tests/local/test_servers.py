"""The private servers: started, stopped, killed and started again."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic

import psycopg
import pytest
from redis import Redis
from redis.exceptions import RedisError

from helpdesk.local.data import FolderInUse, forget, locked, secret
from helpdesk.local.servers import Postgres, Server, ServerError, Valkey

pytestmark = pytest.mark.stack


def answers(server: Server) -> bool:
    try:
        if isinstance(server, Postgres):
            with psycopg.connect(server.url, connect_timeout=2) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        with Redis.from_url(server.url) as client:
            return bool(client.ping())
    except (psycopg.OperationalError, RedisError):
        return False


@pytest.fixture(params=[Postgres, Valkey], ids=["postgres", "valkey"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    server: Server = request.param(tmp_path / "server")
    yield server
    server.stop()


def test_it_answers_from_start_to_stop(server: Server) -> None:
    server.start()
    assert answers(server)

    server.stop()
    assert not answers(server)
    server.stop()  # Again is fine.


def test_after_a_crash_it_starts_on_the_same_address(server: Server) -> None:
    server.start()
    url = server.url

    server.kill()
    assert not answers(server)
    server.start()

    assert answers(server)
    assert server.url == url


def test_without_its_password_nobody_gets_in(server: Server) -> None:
    server.start()
    server.password = "wrong"  # What the url is made of.

    assert not answers(server)
    server.password = secret(server.folder / "password")


def test_data_survives_a_stop_and_a_crash(tmp_path: Path) -> None:
    server = Postgres(tmp_path / "server")
    with server, psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS value")
    server.start()
    server.kill()
    with server, psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT value FROM kept").fetchone() == (7,)
    # Another object on the same folder: the password is kept there too.
    with Postgres(tmp_path / "server") as again, psycopg.connect(again.url) as connection:
        assert connection.execute("SELECT value FROM kept").fetchone() == (7,)


def test_after_a_crash_in_the_middle_of_work_it_starts_again(tmp_path: Path) -> None:
    with Postgres(tmp_path / "server", fast=True) as server:
        with (
            closing(psycopg.connect(server.url, autocommit=True)) as busy,
            closing(psycopg.connect(server.url, autocommit=True)) as onlooker,
        ):
            # No wait in which the backend would notice that its server is gone.
            busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 10000000000)")
            state = "SELECT state FROM pg_stat_activity WHERE pid = %s"
            deadline = monotonic() + 20
            while onlooker.execute(state, [busy.info.backend_pid]).fetchone() != ("active",):
                assert monotonic() < deadline
            server.kill()

        server.start()

        assert answers(server)


def test_a_pid_file_that_names_a_stranger_is_stale(tmp_path: Path) -> None:
    """After a restart of the machine the number belongs to anybody."""
    server = Postgres(tmp_path / "server", fast=True)
    server.start()
    file = tmp_path / "server" / "data" / "postmaster.pid"
    _, *rest = file.read_text().splitlines()
    server.kill()
    with subprocess.Popen(["sleep", "600"], **server._identity()) as stranger:
        try:
            file.write_text("\n".join([str(stranger.pid), *rest, ""]))
            with server:
                assert answers(server)
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_a_server_left_over_in_the_folder_is_stopped_first(tmp_path: Path) -> None:
    left = Postgres(tmp_path / "server", fast=True)
    left.start()

    with Postgres(tmp_path / "server", fast=True) as server:
        assert answers(server)
        assert not answers(left)
    left.stop()  # Waits for what has ended long ago.


def test_an_interrupted_first_start_is_not_taken_for_a_database(tmp_path: Path) -> None:
    server = Postgres(tmp_path / "server")
    (tmp_path / "server" / "data.new").mkdir()
    (tmp_path / "server" / "data.new" / "PG_VERSION").write_text("18")

    with server:
        assert answers(server)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with Valkey(tmp_path / "first") as first:
        second = Valkey(tmp_path / "second", port=first.port)
        with pytest.raises(ServerError, match=r"[Aa]ddress already in use"):
            second.start()


CHILD = """
import sys
from pathlib import Path
from helpdesk.local.servers import Postgres, Valkey
servers = [Postgres(Path(sys.argv[1]) / "postgres"), Valkey(Path(sys.argv[1]) / "valkey")]
for server in servers:
    server.start()
print(*(server.pid for server in servers), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_when_the_parent_is_killed_the_servers_end_too(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    handles = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
    assert len(handles) == 2

    with parent:
        parent.send_signal(signal.SIGKILL)

    for handle in handles:
        wait_for_exit(handle)
        os.close(handle)


def wait_for_exit(handle: int) -> None:
    assert select.select([handle], [], [], 20)[0], "still there"


def test_a_folder_is_used_by_one_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path / "data"):
        with pytest.raises(FolderInUse, match="HELPDESK_DATA"), locked(tmp_path / "data"):
            pass
        with pytest.raises(FolderInUse):
            forget(tmp_path / "data")
    forget(tmp_path / "data")
    assert not (tmp_path / "data").exists()
    forget(tmp_path / "data")


def test_what_is_not_ours_in_a_data_folder_is_never_deleted(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    forget(tmp_path)
    assert (tmp_path / "postgres").exists()  # Never used by us.

    (tmp_path / "photos").mkdir()
    with locked(tmp_path):
        secret(tmp_path / "secret-key")
    forget(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_either_all_folders_are_forgotten_or_none(tmp_path: Path) -> None:
    with locked(tmp_path / "idle"):
        secret(tmp_path / "idle" / "secret-key")
    with locked(tmp_path / "busy"), pytest.raises(FolderInUse):
        forget(tmp_path / "idle", tmp_path / "busy")

    assert (tmp_path / "idle" / "secret-key").exists()


def test_a_secret_is_kept_and_private(tmp_path: Path) -> None:
    first = secret(tmp_path / "secret")

    assert secret(tmp_path / "secret") == first
    assert len(first) > 40
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
