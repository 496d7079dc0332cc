"""What another user of the machine can do with the ports of Spark: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.local

GUESSES = (None, "guessed")

# A JVM that has Spark's classes and knows nothing of ours but its ports. A process of its own:
# pyspark asks the JVM of its session about the errors of every other.
STRANGER = '''
import json
import sys
from pathlib import Path

from py4j.protocol import Py4JJavaError

from delta_outbox.runtime.jvm import running_jvm


def conf(jvm, secret):
    made = jvm.org.apache.spark.SparkConf(False).set("spark.network.timeout", "30s")
    made.set("spark.rpc.lookupTimeout", "30s").set("spark.rpc.askTimeout", "30s")
    if secret is not None:
        made.set("spark.authenticate", "true").set("spark.authenticate.secret", secret)
    return made


def guard(jvm, settings):
    config = getattr(jvm.org.apache.spark.internal.config, "package$")
    file = getattr(config, "MODULE$").AUTH_SECRET_FILE()
    return jvm.org.apache.spark.SecurityManager(settings, jvm.scala.Option.empty(), file)


def send_message(gateway, port, secret, endpoint):
    """Ask the driver for one of its endpoints, as an executor of Spark does."""
    jvm = gateway.jvm
    settings, rpc = conf(jvm, secret), jvm.org.apache.spark.rpc
    env = rpc.RpcEnv.create("stranger", "127.0.0.1", 0, settings, guard(jvm, settings), True)
    try:
        env.setupEndpointRef(rpc.RpcAddress("127.0.0.1", port), endpoint)
    finally:
        env.shutdown()


def read_block(gateway, port, secret, block):
    """Ask the driver for one of its blocks, as an executor of Spark does."""
    jvm, network = gateway.jvm, gateway.jvm.org.apache.spark.network
    settings = network.util.TransportConf(
        "shuffle", network.util.MapConfigProvider(jvm.java.util.HashMap())
    )
    context = network.TransportContext(settings, network.server.NoOpRpcHandler())
    bootstraps = jvm.java.util.ArrayList()
    if secret is not None:
        known = guard(jvm, conf(jvm, secret))
        bootstraps.add(network.crypto.AuthClientBootstrap(settings, "app", known))
    factory = context.createClientFactory(bootstraps)
    blocks = gateway.new_array(jvm.java.lang.String, 1)
    blocks[0] = block
    try:
        message = network.shuffle.protocol.OpenBlocks("app", "driver", blocks).toByteBuffer()
        factory.createClient("127.0.0.1", port).sendRpcSync(message, 30_000)
    finally:
        factory.close()
        context.close()


with running_jvm({"spark.driver.memory": "300m"}, log=Path(sys.argv[1])) as gateway:
    for line in sys.stdin:
        kind, *words = json.loads(line)
        try:
            {"message": send_message, "block": read_block}[kind](gateway, *words)
        except Py4JJavaError as error:
            print(json.dumps(str(error.java_exception)), flush=True)
        else:
            print("null", flush=True)
'''

Ask = Callable[..., str | None]


@pytest.fixture(scope="module")
def stranger(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Return a function that lets a stranger ask, and returns by which error it was refused."""
    log = tmp_path_factory.mktemp("stranger") / "jvm.log"
    with subprocess.Popen(
        [sys.executable, "-c", STRANGER, str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said, heard = process.stdin, process.stdout

        def ask(*words: object) -> str | None:
            said.write(json.dumps(words) + "\n")
            said.flush()
            answer: str | None = json.loads(heard.readline())
            return answer

        yield ask
        process.stdin.close()


def test_the_driver_takes_no_message_of_a_stranger(spark: SparkSession, stranger: Ask):
    """Whoever does not know the secret of this start, or guesses it, gets no answer from the port
    for messages; with it there is one.
    """
    jvm: Any = spark._jvm
    port = int(spark.sparkContext.getConf().get("spark.driver.port") or 0)
    for guess in GUESSES:
        assert stranger("message", port, guess, "HeartbeatReceiver") is not None
    secret = jvm.org.apache.spark.SparkEnv.get().securityManager().getSecretKey()
    assert stranger("message", port, secret, "HeartbeatReceiver") is None


def test_the_driver_gives_no_block_to_a_stranger(spark: SparkSession, stranger: Ask):
    """The same of the port for blocks, where the data of every query passes."""
    jvm: Any = spark._jvm
    kept = spark.sparkContext.broadcast(list(range(1000)))
    env = jvm.org.apache.spark.SparkEnv.get()
    port = env.blockManager().blockTransferService().port()
    java: Any = kept._jbroadcast
    block = f"broadcast_{java.id()}_piece0"
    for guess in GUESSES:
        assert stranger("block", port, guess, block) is not None
    assert stranger("block", port, env.securityManager().getSecretKey(), block) is None
    kept.destroy()


def test_the_secret_is_in_no_argument_list(spark: SparkSession):
    """The secret is made in the JVM: neither its arguments nor its environment, nor Spark's
    settings hold it.
    """
    jvm: Any = spark._jvm
    secret = jvm.org.apache.spark.SparkEnv.get().securityManager().getSecretKey()
    process = Path(f"/proc/{int(jvm.java.lang.ProcessHandle.current().pid())}")
    for name in ("cmdline", "environ"):
        assert secret not in (process / name).read_text(encoding="utf-8", errors="replace")
    assert secret not in str(spark.sparkContext.getConf().getAll())
