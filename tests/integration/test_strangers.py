"""What another user of the machine can do with the ports of Spark: nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from delta_outbox.jvm import running_jvm

pytestmark = pytest.mark.local

LOOPBACK = "127.0.0.1"
ANSWER_MS = 30_000


@pytest.fixture(scope="module")
def stranger(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a JVM that has Spark's classes and knows nothing of ours but its ports."""
    folder = tmp_path_factory.mktemp("stranger")
    with running_jvm({"spark.driver.memory": "300m"}, log=folder / "jvm.log") as gateway:
        yield gateway.jvm


def conf(jvm: Any, secret: str | None) -> Any:
    """Return settings with a secret, or of somebody who does not authenticate."""
    made = jvm.org.apache.spark.SparkConf(False)
    if secret is not None:
        made.set("spark.authenticate", "true").set("spark.authenticate.secret", secret)
    return made


def guard(jvm: Any, settings: Any) -> Any:
    """Return Spark's security manager for settings."""
    config = getattr(jvm.org.apache.spark.internal.config, "package$")
    file = getattr(config, "MODULE$").AUTH_SECRET_FILE()
    return jvm.org.apache.spark.SecurityManager(settings, jvm.scala.Option.empty(), file)


def send_message(jvm: Any, port: int, secret: str | None) -> None:
    """Ask the driver for one of its endpoints, as an executor of Spark does."""
    settings = conf(jvm, secret)
    rpc = jvm.org.apache.spark.rpc
    env = rpc.RpcEnv.create("stranger", LOOPBACK, 0, settings, guard(jvm, settings), True)
    try:
        env.setupEndpointRef(rpc.RpcAddress(LOOPBACK, port), "HeartbeatReceiver")
    finally:
        env.shutdown()


def read_block(jvm: Any, port: int, secret: str | None, block: str) -> None:
    """Ask the driver for one of its blocks, as an executor of Spark does."""
    network = jvm.org.apache.spark.network
    settings = network.util.TransportConf(
        "shuffle", network.util.MapConfigProvider(jvm.java.util.HashMap())
    )
    context = network.TransportContext(settings, network.server.NoOpRpcHandler())
    bootstraps = jvm.java.util.ArrayList()
    if secret is not None:
        bootstraps.add(
            network.crypto.AuthClientBootstrap(settings, "app", guard(jvm, conf(jvm, secret)))
        )
    factory = context.createClientFactory(bootstraps)
    try:
        words = jvm.java.lang.reflect.Array.newInstance(
            jvm.java.lang.Class.forName("java.lang.String"), 1
        )
        words[0] = block
        message = network.shuffle.protocol.OpenBlocks("app", "driver", words).toByteBuffer()
        factory.createClient(LOOPBACK, port).sendRpcSync(message, ANSWER_MS)
    finally:
        factory.close()
        context.close()


def test_the_driver_takes_no_message_of_a_stranger(spark: SparkSession, stranger: Any):
    """Whoever does not know the secret of this start, or guesses it, gets no answer from the port
    for messages; with it there is one.
    """
    jvm: Any = spark._jvm
    port = int(spark.sparkContext.getConf().get("spark.driver.port") or 0)
    for guess in (None, "guessed"):
        with pytest.raises(Py4JJavaError):
            send_message(stranger, port, guess)
    secret = jvm.org.apache.spark.SparkEnv.get().securityManager().getSecretKey()
    send_message(stranger, port, secret)


def test_the_driver_gives_no_block_to_a_stranger(spark: SparkSession, stranger: Any):
    """The same of the port for blocks, where the data of every query passes."""
    jvm: Any = spark._jvm
    kept = spark.sparkContext.broadcast(list(range(1000)))
    env = jvm.org.apache.spark.SparkEnv.get()
    port = env.blockManager().blockTransferService().port()
    java: Any = kept._jbroadcast
    block = f"broadcast_{java.id()}_piece0"
    for guess in (None, "guessed"):
        with pytest.raises(Py4JJavaError):
            read_block(stranger, port, guess, block)
    read_block(stranger, port, env.securityManager().getSecretKey(), block)
    kept.destroy()


def test_the_secret_is_in_no_argument_list(spark: SparkSession):
    """The secret is made in the JVM: neither its arguments nor its environment, nor Spark's
    settings hold it.
    """
    jvm: Any = spark._jvm
    secret = jvm.org.apache.spark.SparkEnv.get().securityManager().getSecretKey()
    pid = int(jvm.java.lang.ProcessHandle.current().pid())
    assert secret not in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    assert secret not in Path(f"/proc/{pid}/environ").read_text(encoding="utf-8", errors="replace")
    assert secret not in str(spark.sparkContext.getConf().getAll())
