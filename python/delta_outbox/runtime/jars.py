"""Resolves Delta's jars once, by Spark's own resolver, and keeps them in the cache folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

from delta_outbox.core.errors import OutboxError
from delta_outbox.runtime.file_lock import file_locked
from delta_outbox.runtime.jvm import SparkNotStarted, running_jvm
from delta_outbox.runtime.ownership import NotYours, user_name, write_own

DELTA_COORDINATES = "io.delta:delta-spark_4.1_2.13:4.4.0"

CACHE_VARIABLE = "OUTBOX_CACHE"
IVY_SETTINGS_VARIABLE = "OUTBOX_IVY_SETTINGS"  # an ivysettings.xml, for those behind a mirror

_VERSION_SUFFIX = re.compile(r"-\d[\w.\-]*\.jar$")


class JarsUnavailable(OutboxError):
    """Delta's jars could not be fetched: connect to Maven Central or name a mirror."""

    code = "JARS_UNAVAILABLE"
    remedy = (
        "The first start needs Maven Central. Connect to it, or name a mirror: "
        f"{IVY_SETTINGS_VARIABLE}=<ivysettings.xml>, proxies through SPARK_SUBMIT_OPTS."
    )


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the cache folder: OUTBOX_CACHE, else ~/.cache/delta-outbox."""
    variables = os.environ if environ is None else environ
    named = variables.get(CACHE_VARIABLE, "").strip()
    folder = Path(named).expanduser() if named else Path("~/.cache/delta-outbox").expanduser()
    return folder.absolute()


def _own_cache() -> Path:
    """Return the cache folder, unless nobody has named it and it is somebody else's.

    Raises:
        NotYours: it belongs to another user, whose jars this process would run (sudo that keeps
            HOME, for example).
    """
    folder = cache_folder()
    if not os.environ.get(CACHE_VARIABLE, "").strip() and folder.exists():
        owner = folder.stat().st_uid
        if owner not in (os.geteuid(), 0):
            raise NotYours(
                f"The cache folder {folder} belongs to {user_name(owner)}: what lies there is run.",
                remedy=f"Name a folder of yours, or this one if you trust it: {CACHE_VARIABLE}=...",
            )
    return folder


def resolve(
    coordinates: str = DELTA_COORDINATES, *, cache: Path | None = None, debug: bool = False
) -> tuple[Path, ...]:
    """Return the jars of Maven coordinates that Spark does not bring itself.

    The first call fetches them (about 20 s); later ones read a list. Resolving at every start
    would cost seconds, and two processes resolving into one Ivy folder corrupt each other's jars:
    hence the list and the lock.

    Args:
        coordinates: Maven coordinates, joined by commas.
        cache: the cache folder, if not the user's.
        debug: show what the resolver prints.

    Raises:
        JarsUnavailable: they could not be fetched.
        NotYours: the cache folder belongs to another user, and nobody has named it.
    """
    import pyspark

    folder = cache or _own_cache()
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.\-]+", "_", f"{coordinates}-spark-{pyspark.__version__}")
    listing = folder / "jars" / f"{name}.json"
    known = _read(listing)
    if known is not None:
        return known
    with file_locked(folder / "resolve.lock"):
        known = _read(listing)  # somebody else may have resolved while we waited
        if known is None:
            known = _own(_fetch(coordinates, folder, debug=debug))
            listing.parent.mkdir(parents=True, exist_ok=True)
            draft = listing.with_suffix(".draft")
            write_own(draft, json.dumps([str(jar) for jar in known], indent=1))
            draft.replace(listing)
    return known


def _read(listing: Path) -> tuple[Path, ...] | None:
    """Return the jars of a list if all of them are still there."""
    try:
        jars = tuple(Path(jar) for jar in json.loads(listing.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    return jars if jars and all(jar.is_file() for jar in jars) else None


def _fetch(coordinates: str, folder: Path, *, debug: bool) -> tuple[Path, ...]:
    settings = {
        "spark.jars.packages": coordinates,
        "spark.jars.ivy": str(folder / "ivy"),
        "spark.driver.memory": "512m",
    }
    ivy_settings = os.environ.get(IVY_SETTINGS_VARIABLE, "").strip()
    if ivy_settings:
        settings["spark.jars.ivySettings"] = str(Path(ivy_settings).expanduser().absolute())
    log = folder / "resolve.log"
    try:
        # Spark resolves before it hands over; no Spark context is needed to read the result.
        with running_jvm(settings, log=log, debug=debug) as gateway:
            listed = gateway.jvm.java.lang.System.getProperty("spark.jars")
    except SparkNotStarted as error:
        raise JarsUnavailable(
            f"Delta's jars ({coordinates}) could not be fetched. Log: {log}"
        ) from error
    return tuple(Path(unquote(urlparse(jar).path)) for jar in str(listed).split(",") if jar)


def _own(jars: tuple[Path, ...]) -> tuple[Path, ...]:
    """Leave out what Spark brings itself: first on the class path, an older copy would win."""
    import pyspark

    bundled = {
        _VERSION_SUFFIX.sub("", jar.name)
        for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    }
    bundled.add("commons-logging")  # its classes come with Spark as jcl-over-slf4j
    # Ivy names a jar <organisation>_<artifact>-<version>.jar.
    return tuple(
        jar for jar in jars if _VERSION_SUFFIX.sub("", jar.name).split("_", 1)[-1] not in bundled
    )
