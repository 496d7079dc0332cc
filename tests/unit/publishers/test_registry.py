"""From the `type` of a destination to a checked publisher."""

from __future__ import annotations

import sys
import traceback
from importlib.metadata import metadata
from types import ModuleType

import pytest

from delta_outbox.core.errors import (
    BadSettings,
    OutboxError,
    PublisherUnavailable,
    UnknownPublisher,
)
from delta_outbox.publishers import Publisher
from delta_outbox.publishers.memory import MemoryPublisher
from delta_outbox.publishers.null import NullPublisher
from delta_outbox.publishers.registry import (
    EXTRAS,
    PublisherNotLoaded,
    find_publisher,
    is_ordered,
    known_types,
    prepare_settings,
    probe,
)
from delta_outbox.publishers.setting_reader import FilesInHome


class Complete(Publisher):
    """The least that a publisher of one's own needs."""

    def open(self, settings):
        self.settings = settings

    def publish(self, events):
        return []

    def close(self):
        pass


class Incomplete:
    """A class that forgot something."""

    def open(self, settings):
        self.settings = settings


class Plain:
    """A publisher that never heard of our protocol class."""

    def open(self, settings):
        pass

    def publish(self, events):
        return []

    def close(self):
        pass


class Choosy(Complete):
    """A publisher with checks of its own."""

    @classmethod
    def prepare(cls, settings, home):
        return {**settings, "home": str(home)}

    @classmethod
    def validate(cls, settings):
        if "url" not in settings:
            raise ValueError("`url` is missing.")

    @classmethod
    def probe(cls, settings, timeout):
        raise OSError("password=hunter2 refused")


@pytest.fixture(autouse=True)
def _module(monkeypatch):
    module = ModuleType("some_package")
    for found in (Complete, Incomplete, Plain, Choosy):
        setattr(module, found.__name__, found)
    monkeypatch.setitem(__import__("sys").modules, "some_package", module)


@pytest.mark.parametrize("name", ["jsonl", "kafka", "memory", "null"])
def test_every_built_in_is_found(name):
    """The types that the contract names exist and are ordered."""
    assert find_publisher(name, destination="default").ordered is True
    assert name in known_types()


def test_a_class_is_found_by_its_path():
    """`package.module:Class` names a publisher of one's own."""
    assert find_publisher("some_package:Complete", destination="default") is Complete


def test_order_is_promised_explicitly():
    """A class that does not say that it keeps order does not."""
    assert is_ordered(find_publisher("some_package:Plain", destination="default")) is False
    assert is_ordered(NullPublisher) is True


def test_an_entry_point_is_found(tmp_path, monkeypatch):
    """An installed package offers a type through the group delta_outbox.publishers."""
    installed = tmp_path / "some_package-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: some-package\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(
        "[delta_outbox.publishers]\nmine = some_package:Complete\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert find_publisher("mine", destination="default") is Complete
    assert "mine" in known_types()


@pytest.mark.parametrize(("library", "extra"), EXTRAS.items())
def test_a_missing_library_names_the_extra(monkeypatch, library, extra):
    """A built-in whose library is not installed says which extra, of its own name, brings it."""
    for name in list(sys.modules):
        if name.startswith((f"delta_outbox.publishers.{extra}", f"{library}.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(PublisherNotLoaded, match=f"'{library}' is missing") as caught:
        find_publisher(extra, destination="default")
    assert f"pip install 'delta-outbox[{extra}]'" in caught.value.remedy


def test_every_extra_of_a_publisher_is_known():
    """The absence of every extra is noticed by a library of it."""
    extras = set(metadata("delta-outbox").get_all("Provides-Extra") or ())
    assert extras - {"bench", "demo", "dev", "draw", "otel", "todo"} == set(EXTRAS.values())


def test_an_unknown_type_lists_the_known():
    """A misspelt type is one sentence with all that there are."""
    with pytest.raises(
        UnknownPublisher, match=r"Known: http, jsonl, kafka, memory, nats, .*Got: 'kafak'"
    ):
        find_publisher("kafak", destination="default")


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("no_such_package.module:Class", "the module 'no_such_package.module' cannot be imported"),
        ("some_package:Missing", "the module 'some_package' has no 'Missing'"),
        ("some_package:Incomplete", "Missing: publish, close"),
        ("os:sep", "must be a class"),
        (":Class", "cannot be imported"),
        ("some_package:", "cannot be imported|has no"),
    ],
)
def test_what_cannot_be_loaded_says_why(type_, said):
    """A publisher that cannot be used names destination, module and reason."""
    with pytest.raises(PublisherNotLoaded, match=said) as caught:
        find_publisher(type_, destination="mine")
    assert "publishers.mine" in str(caught.value)


def test_settings_are_prepared_and_checked(tmp_path):
    """The class completes its settings before it checks them."""
    prepared = prepare_settings(Choosy, {"url": "x"}, destination="d", home=tmp_path)
    assert prepared == {"url": "x", "home": str(tmp_path)}


@pytest.mark.parametrize("name", sorted(set(EXTRAS.values())))
def test_files_lie_in_the_home(name, tmp_path):
    """The name of a file is relative to the home, so that every process finds it."""
    given = {"ca_file": "ca.pem", "client_key_file": "", "credentials_file": "/a/b", "url": "x"}
    publisher = find_publisher(name, destination="default")
    assert issubclass(publisher, FilesInHome)
    assert {**given, "ca_file": str(tmp_path / "ca.pem")} == publisher.prepare(given, tmp_path)


def test_bad_settings_name_the_destination(tmp_path):
    """A rule that a setting breaks is one sentence that names the destination."""
    with pytest.raises(BadSettings, match=r"publishers\.d: `url` is missing\."):
        prepare_settings(Choosy, {}, destination="d", home=tmp_path)


@pytest.mark.parametrize("publisher", [NullPublisher, MemoryPublisher])
def test_settings_nobody_knows_are_refused(publisher, tmp_path):
    """A misspelt setting does not pass silently."""
    with pytest.raises(BadSettings, match="Got: nmae"):
        prepare_settings(publisher, {"nmae": 1}, destination="d", home=tmp_path)


def test_a_destination_that_does_not_answer_is_one_sentence():
    """Whatever a probe raises becomes one error without secrets."""
    with pytest.raises(
        PublisherUnavailable, match=r"'d' is unavailable: OSError: password=.{3} ref"
    ):
        probe(Choosy, {}, destination="d")


class Talkative(Complete):
    """Say the password in every error."""

    @classmethod
    def validate(cls, settings):
        if settings.get("valid"):
            return
        wrong = {"key": KeyError, "value": ValueError}[settings["raises"]]
        raise wrong(f"bad settings: {settings}")

    @classmethod
    def probe(cls, settings, timeout):
        wrong = {"refused": ConnectionError, "broken": OSError}[settings["raises"]]
        raise wrong(f"{settings['password']} refused")


def _prepare_and_probe(settings, home):
    prepare_settings(Talkative, settings, destination="d", home=home)
    probe(Talkative, settings, destination="d")


@pytest.mark.parametrize("raises", ["key", "value", "refused", "broken"])
def test_errors_and_their_traces_show_no_secret(tmp_path, raises):
    """Whatever a publisher raises about its settings, neither our error nor its trace holds a
    secret of theirs.
    """
    settings = {"password": "hunter2's \\ word", "raises": raises}
    with pytest.raises(OutboxError) as caught:
        _prepare_and_probe({**settings, "valid": raises in ("refused", "broken")}, tmp_path)
    trace = "".join(traceback.format_exception(caught.value))
    assert "***" in str(caught.value)
    assert "hunter2" not in trace


def test_a_publisher_without_probe_passes():
    """The check before a claim is optional."""
    probe(Complete, {}, destination="d")
