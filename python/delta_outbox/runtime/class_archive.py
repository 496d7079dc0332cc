"""Keeps an archive of Java's loaded classes, so that later JVMs start faster.

A command loads some 20,000 classes. Taken from an archive (application class-data sharing) they
cost a third less until the first answer: 18 s instead of 29 s for `outbox status` on two cores.
The JVM itself checks whether an archive fits its version and its class path, and does without one
that does not; our name for it only keeps the archives of several installations apart.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delta_outbox.runtime.home_lock import is_alive

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

KEPT: Final = 3
"""Archives that stay, the last used ones; each has some 200 MB."""

# What the JVM says about single classes that it leaves out helps nobody.
_QUIET: Final = "-Xlog:cds=error,cds+dynamic=error"


@dataclass(frozen=True, kw_only=True)
class ClassArchive:
    """The archive of one installation, as one start uses it.

    Args:
        path: where it is, or will be.
        recorded: the JVM of this start is asked to write it before it ends.
    """

    path: Path
    recorded: bool

    @classmethod
    def of(
        cls, *, java: str, jars: tuple[Path, ...], cache: Path, record: bool = False
    ) -> ClassArchive:
        """Return the archive of an installation.

        Args:
            java: the version of Java.
            jars: what stands before Spark's own jars on the class path.
            cache: the cache folder.
            record: write it if there is none.
        """
        import pyspark

        spark = Path(pyspark.__file__).parent / "jars"
        # A new installation at the same place has a new folder, and new times of the jars.
        parts = [java, pyspark.__version__, str(spark), str(spark.stat().st_mtime_ns)]
        digest = hashlib.sha256("\n".join([*parts, *map(str, jars)]).encode()).hexdigest()
        path = cache / "classes" / f"{digest[:16]}.jsa"
        return cls(path=path, recorded=record and not path.is_file())

    @property
    def draft(self) -> Path:
        """Return the file that the JVM of this process writes."""
        return self.path.with_suffix(f".{os.getpid()}")

    def options(self) -> list[str]:
        """Return the options that let a JVM write the archive, or use it; none without one."""
        if self.recorded:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Not -XX:ArchiveClassesAtExit: a JVM whose driver was killed would stay to write it,
            # and hold the home for half a minute.
            return ["-XX:+RecordDynamicDumpInfo", _QUIET]
        try:
            os.utime(self.path)  # the last used ones stay
        except OSError:
            return []
        return [f'"-XX:SharedArchiveFile={self.path}"']

    def write(self, gateway: JavaGateway) -> None:
        """Let the JVM of this process write what it has loaded; if it cannot, there is no archive.

        Args:
            gateway: to that JVM.
        """
        from py4j.protocol import Py4JError

        if not self.recorded:
            return
        try:
            _diagnose(gateway, "vmCds", "dynamic_dump", f'"{self.draft}"')
        except Py4JError:  # also that of a JVM that died of it: what there is may be half of it
            self.draft.unlink(missing_ok=True)
        self.keep()

    def keep(self) -> None:
        """Put what the JVM has written in its place, and remove what nobody uses."""
        with contextlib.suppress(FileNotFoundError):
            self.draft.replace(self.path)
        for draft in self.path.parent.glob("*.[0-9]*"):  # of a driver that was killed as it wrote
            if not is_alive(int(draft.suffix[1:])):
                draft.unlink(missing_ok=True)
        used = sorted(self.path.parent.glob("*.jsa"), key=lambda one: one.stat().st_mtime)
        for old in used[:-KEPT]:
            old.unlink(missing_ok=True)


def _diagnose(gateway: JavaGateway, command: str, *words: str) -> None:
    """Give a JVM a command as `jcmd` does, which not every Java has.

    Args:
        gateway: to the JVM.
        command: as its bean `DiagnosticCommand` calls it.
        words: arguments.
    """

    def array(kind: Any, *values: object) -> Any:
        made = gateway.new_array(kind, len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    lang, name = gateway.jvm.java.lang, gateway.jvm.javax.management.ObjectName
    text, bean = "[Ljava.lang.String;", name("com.sun.management:type=DiagnosticCommand")
    kinds = ("javax.management.ObjectName", "java.lang.String", "[Ljava.lang.Object;", text)
    # The class of the server itself is not open to callers; the interface is.
    invoke = lang.Class.forName("javax.management.MBeanServer").getMethod(
        "invoke", array(lang.Class, *map(lang.Class.forName, kinds))
    )
    given = array(lang.Object, array(lang.String, *words))
    server = lang.management.ManagementFactory.getPlatformMBeanServer()
    invoke.invoke(server, array(lang.Object, bean, command, given, array(lang.String, text)))
