"""A module whose import kills the process."""

import os
import signal

os.kill(os.getpid(), signal.SIGKILL)
