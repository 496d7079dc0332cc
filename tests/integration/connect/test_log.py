"""The log keeps its promises through a server: writers of several clients, errors as text."""

import pytest

# The very tests of the folder above; they find the fixtures of this one.
from tests.integration.store.test_log import *  # noqa: F403

pytestmark = pytest.mark.rest
