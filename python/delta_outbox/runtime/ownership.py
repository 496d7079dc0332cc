"""Checks whose a file is before it is believed: others may have put it there.

A home is looked for upwards, and settings in the working folder. On a machine with several users
either may have been left there by another one: settings name code that is run, and a link lets
whoever writes through it overwrite a file. Git has the same rule (`safe.directory`): what belongs
to somebody else must be named.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from pathlib import Path

from delta_outbox.core.errors import OutboxError

PRIVATE_FILE = 0o600


class NotYours(OutboxError):
    """What was found belongs to somebody else: name it if you trust it."""

    code = "NOT_YOURS"
    remedy = "Work in a folder of your own, or name what you trust."


class LinkInTheWay(OutboxError):
    """A file that is to be written is a link: remove it; links are not written through."""

    code = "LINK_IN_THE_WAY"
    remedy = (
        "See who has put it there and remove it. Files of a home are never written through a "
        "link; a folder of a home may be a link of your own."
    )

    def __init__(self, *, path: Path, owner: int | None = None, remedy: str | None = None) -> None:
        whose = "" if owner is None else f" of {user_name(owner)}"
        super().__init__(f"{path}: a link{whose} stands where we write.", remedy=remedy)


def user_name(uid: int) -> str:
    """Return the name of a user, with the number.

    Args:
        uid: the number.
    """
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def check_home_owner(named: Path, root: Path, *, variable: str) -> None:
    """Refuse a home that was only found and that another user owns.

    Args:
        named: where it was found, which may be a link.
        root: where it lies.
        variable: the environment variable by which it can be named.

    Raises:
        NotYours: it belongs to somebody else.
    """
    for owner in (named.lstat().st_uid, root.stat().st_uid):
        if owner != os.geteuid():
            raise NotYours(
                f"The home {named} belongs to {user_name(owner)}, and this process is "
                f"{user_name(os.geteuid())}. A home that was not named but found must be yours: "
                "its settings name code that is run.",
                remedy=(
                    f"If you trust it, name it: {variable}={root}. Else work below another folder, "
                    "or create a home of your own with `outbox init`."
                ),
            )


def check_settings_owner(file: Path, *, home: Path | None) -> None:
    """Refuse a settings file that was only found and that another user may have written.

    Args:
        file: the file; that it lies in the home or in the working folder is why it was found.
        home: the home, if there is one; what its owner has put there belongs to it.

    Raises:
        NotYours: it belongs to somebody else, or everybody may write it.
    """
    trusted = {os.geteuid(), 0}
    if home is not None and file.parent == home:
        trusted.add(home.stat().st_uid)
    owner = file.lstat().st_uid
    remedy = f"If you trust it, name it: --config {file} or OUTBOX_CONFIG. Else move it away."
    rule = "Settings that were not named but found must be yours or root's: they name code."
    if owner not in trusted:
        raise NotYours(f"{file} belongs to {user_name(owner)}. {rule}", remedy=remedy)
    in_home = home is not None and file.parent == home  # 0700 keeps everybody out
    if not in_home and file.exists() and stat.S_IMODE(file.stat().st_mode) & stat.S_IWOTH:
        raise NotYours(
            f"{file} can be written by everybody. {rule}",
            remedy=f"Read it, and take that right away: chmod o-w {file}.",
        )


def check_folder_link(path: Path) -> None:
    """Refuse a folder that is a link, unless this user (or root) has put the link there.

    Args:
        path: a folder that is written to; it need not exist.

    Raises:
        LinkInTheWay: it is a link of somebody else.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode) and found.st_uid not in (os.geteuid(), 0):
        raise LinkInTheWay(path=path, owner=found.st_uid)


def check_file_link(path: Path) -> None:
    """Refuse a file that is a link, whoever has put it there.

    Args:
        path: a file that is written to by a program that would follow; it need not exist.

    Raises:
        LinkInTheWay: it is one.
    """
    if path.is_symlink():
        raise LinkInTheWay(path=path)


def open_own(path: Path, flags: int, mode: int = PRIVATE_FILE) -> int:
    """Open a file to write it, without following a link, and return the descriptor.

    Args:
        path: the file.
        flags: of `os.open`.
        mode: of a file that is created.

    Raises:
        LinkInTheWay: it is a link.
        OSError: it cannot be opened.
    """
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK) or path.is_symlink():
            raise LinkInTheWay(path=path) from error
        raise


def write_own(path: Path, text: str) -> None:
    """Write a file anew; what stood there, a link included, is replaced and not followed.

    Args:
        path: the file.
        text: its content.
    """
    path.unlink(missing_ok=True)
    descriptor = open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
