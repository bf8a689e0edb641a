"""Whatever is sent to the API, by whom so ever: no server error, and no answer that the document does not have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from tests.cast import Cast, make_cast
from tests.factories import UserFactory, act, make_due, open_ticket
from tests.stack.conftest import Stack
from tickets import services
from tickets.models import Ticket, User

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "3"))
SEED = os.environ.get("FUZZ_SEED", "2026")
PASSWORD = "correct horse battery staple"
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
# Signing out is among the operations: whoever is signed out signs in again.
SIGNING_IN = """
[auth.dynamic.openapi.token]
path = "/api/v1/auth/token/"
payload = {{ username = "{username}", password = "{password}" }}
extract_selector = "/token"
"""

pytestmark = [pytest.mark.stack, pytest.mark.timeout(60 + 60 * EXAMPLES)]


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    """People who can sign in, and something of everything they can ask for."""
    cast = make_cast()
    root = UserFactory(username="root", is_superuser=True, is_staff=True)
    root.set_password(PASSWORD)
    User.objects.update(password=root.password)
    first, second, third = (open_ticket(cast, title=f"Ticket {n}") for n in range(3))
    act(cast, services.assign_ticket, first, membership_id=cast.agent.pk)
    act(cast, services.reply_to_ticket, first, body="We look at it.")
    act(cast, services.add_blocker, second, number=third.number)
    make_due(third)
    # The audit of the beat finds a version that no event explains, and leaves it to a person.
    Ticket.objects.filter(pk=open_ticket(cast).pk).update(version=9)
    return cast


@pytest.mark.parametrize("role", ["", "customer", "agent", "admin", "root"])
def test_no_request_finds_an_error_or_an_answer_that_is_not_in_the_document(
    stack: Stack, cast: Cast, tmp_path: Path, role: str
) -> None:
    who = SIGNING_IN.format(username=role, password=PASSWORD) if role else ""
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(CONFIGURATION.read_text() + who)
    stack.worker()
    stack.beat()
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), f"--config-file={configuration}"),
            *("run", f"{stack.web()}/api/schema/", f"--max-examples={EXAMPLES}"),
            *(f"--seed={SEED}", "--no-color"),
        ],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    # A text of 20,000 characters in a request hides what is wrong with it.
    said = "\n".join(line[:500] for line in (done.stdout + done.stderr).splitlines())
    assert done.returncode == 0, said
