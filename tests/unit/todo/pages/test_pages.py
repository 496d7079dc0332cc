"""The pages, as a browser without a screen sees them."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import Client
from tests.unit.todo.pages.site import EVIL, SECRET, Choice, Site

from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo import keys
from delta_outbox.todo.item_thread import NotInTime
from delta_outbox.todo.limits import MOST_BODY
from delta_outbox.todo.pages import router
from delta_outbox.todo.pages.router import WRONG_KEYS_AT_ONCE
from delta_outbox.todo.pages.sessions import COOKIE, LIFE, Sessions
from delta_outbox.workflow_engine.four_eyes import SamePerson
from delta_outbox.workflow_engine.item_decisions import UndecidedAnswer

ITEM = "/todo/item?id=refund-A-1002"
TAKE = "/todo/item/"
CONTINUE = {"data/choice": '"continue"', "data/order": "A-1"}
CANCEL = {"data/choice": '"cancel"', "data/order": "A-1"}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Site, str]]:
    """Serve pages for all tests, and return them with their address."""
    site = Site()
    with site.served() as found:
        yield site, found


@pytest.fixture
def site(served: tuple[Site, str]) -> Site:
    """Return pages with some items."""
    site, _ = served
    site.fill()
    return site


@pytest.fixture
def address(served: tuple[Site, str]) -> str:
    """Return the address of the pages."""
    return served[1]


def another(address: str) -> Client:
    """Open a browser that nobody has signed in with."""
    # There is no TLS here, and to read the authorities of the world takes long.
    return Client(base_url=address, follow_redirects=True, timeout=30, verify=False)


@pytest.fixture
def browser(address: str) -> Iterator[Client]:
    """Open a browser that nobody has signed in with."""
    with another(address) as client:
        yield client


@pytest.fixture
def ada(site: Site, browser: Client) -> Client:
    """Sign in."""
    sign_in(browser, site.key)
    return browser


def sign_in(browser: Client, key: str, aim: str = "/todo") -> Any:
    """Sign in, and return the page that it leads to."""
    sent = {"token": hidden(browser.get("/todo/sign-in").text), "key": key, "next": aim}
    return browser.post("/todo/sign-in", data=sent)


def hidden(page: str, name: str = "token") -> str:
    """Return what a hidden field of a page holds."""
    found = re.search(rf'name="{name}" value="([^"]+)"', page)
    assert found is not None, page
    return html.unescape(found[1])


def send(browser: Client, address: str, data: dict[str, str], page: str | None = None) -> Any:
    """Send the form of an item, and return the page that it leads to."""
    page = browser.get(address).text if page is None else page
    sent = {name: hidden(page, name) for name in ("token", "answer")}
    return browser.post(address, data={**sent, **data})


def heading(page: str) -> str:
    """Return what a page says first."""
    found = re.search(r'<div class="told.*?<h2>(.*?)</h2>', page, re.DOTALL) or re.search(
        r"<h1>(.*?)</h1>", page
    )
    assert found is not None, page
    return found[1]


def test_who_signs_in_sees_the_own_items(ada: Client) -> None:
    """The items of the own roles are listed by due date, those that are overdue first."""
    page = ada.get("/todo").text
    assert ["Overdue", "Within a day", "Later", "Without a date"] == re.findall(
        r"<h2>(.*?)</h2>", page
    )
    assert ["A-0977", "A-1001", "A-1004", "A-1002", "A-1003"] == re.findall(
        r"item\?id=\w+-(A-\d+)", page
    )
    assert "Overdue by 3 hours" in page


def test_without_a_key_there_is_only_the_way_in(site: Site, browser: Client) -> None:
    """Whoever has not signed in is led to the sign-in, and from there to where they wanted to."""
    page = browser.get(ITEM)
    assert "Sign in" == heading(page.text)
    assert ITEM == hidden(page.text, "next")
    assert "A-1002" not in page.text.replace("refund-A-1002", "")
    assert "Check a refund" == heading(sign_in(browser, site.key, ITEM).text)


@pytest.mark.parametrize(
    "aim", ["https://elsewhere.example/", "//elsewhere.example", "/todo/../x", "/todo?a\r\nb: c"]
)
def test_the_sign_in_leads_to_no_other_site(site: Site, browser: Client, aim: str) -> None:
    """Only pages of ours follow a sign-in, whatever the form says."""
    answer = sign_in(browser, site.key, aim)
    assert ("/todo", "Your items") == (answer.url.path, heading(answer.text))


def test_a_wrong_key_is_told_and_opens_nothing(site: Site, browser: Client) -> None:
    """A key that is not known signs nobody in, and is not shown again."""
    for key in ("no-key-of-anybody", f"{site.key[:-1]}-", ""):
        page = sign_in(browser, key)
        assert 403 == page.status_code
        assert "This key is not known here" in page.text
        assert not key or key not in page.text
        assert "/todo/sign-in" == browser.get("/todo").url.path


def test_keys_cannot_be_tried_for_long(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten wrong keys from one address even the right one waits; another address does not, nor
    does anybody who errs less. What the proxy says counts only where there is one.
    """
    monkeypatch.setattr(router, "WRONG_KEYS_PER_SECOND", 0.001)
    proxied = Site(replace(site.settings, behind_proxy=True))
    with proxied.served() as place, another(place) as one:

        def tried(key: str, address: str, number: int = 0) -> int:
            one.cookies.clear()
            page = one.get("/todo/sign-in")
            headers = [
                ("Cookie", page.headers["set-cookie"].partition(";")[0]),
                ("X-Forwarded-For", f"2001:db8:{number}::1"),  # anybody may send one
                ("X-Forwarded-For", f"198.51.100.7, {address}"),
            ]
            sent = {"token": hidden(page.text), "key": key}
            told = one.post("/todo/sign-in", data=sent, headers=headers, follow_redirects=False)
            return told.status_code

        assert [403] * 10 + [429] == [tried("wrong", "2001:db8::1", n) for n in range(11)]
        assert 429 == tried(proxied.key, "2001:db8::2")
        keys = ["wrong"] * 9 + [proxied.key] * 9 + ["wrong"] * 2
        told = [tried(key, "2001:db8:0:1::1") for key in keys]
        assert [403] * 9 + [303] * 9 + [403, 429] == told
    with Site().served() as place, another(place) as one:
        told = [tried("wrong", f"198.51.100.{n}") for n in range(11)]
        assert [403] * 10 + [429] == told


def test_a_key_that_nobody_can_check_is_not_wrong(
    site: Site, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody can say which keys count, whoever signs in is asked for patience however often,
    and let in as soon as it is known.
    """

    def fail(_: str) -> None:
        raise NotInTime("a test says so")

    with monkeypatch.context() as patched:
        patched.setattr(site.ring, "person", fail)
        told = {sign_in(browser, site.key).status_code for _ in range(2 * WRONG_KEYS_AT_ONCE)}
    assert {503} == told
    assert "Your items" == heading(sign_in(browser, site.key).text)


def test_a_revoked_key_ends_its_sessions(site: Site, ada: Client) -> None:
    """A session lives as long as its key."""
    keys = dict(site.keys.keys)
    site.keys.keys.clear()
    site.ring.look()
    assert "/todo/sign-in" == ada.get("/todo").url.path
    site.keys.keys |= keys
    site.ring.look()


def test_who_signs_out_is_out(ada: Client) -> None:
    """After signing out the items are hidden, and the forms of before are void."""
    page = ada.get(ITEM).text
    ada.post("/todo/sign-out", data={"token": hidden(page)})
    assert "/todo/sign-in" == ada.get("/todo").url.path
    assert 403 == send(ada, ITEM, CANCEL, page).status_code


def test_the_cookie_is_signed_hidden_and_ours_alone(site: Site, browser: Client) -> None:
    """No script reads the cookie, no other site sends it, nobody alters it, and it ends."""
    cookie = browser.get("/todo/sign-in").headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/todo"} <= {
        part.strip().lower() for part in cookie.split(";")
    }
    sign_in(browser, site.key)
    text = browser.cookies[COOKIE]
    assert site.key not in base64.urlsafe_b64decode(f"{text.partition('.')[0]}==").decode()
    now = datetime.now(UTC)
    sessions = Sessions(SECRET)
    assert sessions.read(text, now) is not None
    assert sessions.read(text, now + LIFE) is None
    for altered in (text[:-1], f"A{text[1:]}", text.partition(".")[0], "", "a.b", "é.é"):
        assert sessions.read(altered, now) is None
    assert Sessions(SECRET[::-1]).read(text, now) is None


def test_filters_leave_out_the_others(ada: Client) -> None:
    """Search, task and role choose items; what fits none says so."""
    for query, expected in (
        ("text=a-1004", ["A-1004"]),
        ("task=check_refund", ["A-1002", "A-1003"]),
        ("role=billing&text=1003", ["A-1003"]),
        ("text=unheard", []),
    ):
        page = ada.get(f"/todo?{query}").text
        assert expected == re.findall(r"item\?id=\w+-(A-\d+)", page)
        assert expected or "Nothing fits" in page


def test_a_long_list_has_pages(site: Site, ada: Client) -> None:
    """What does not fit on one page is on the next, which keeps the filter."""
    for number in range(60):
        site.items.add(f"more-{number:02}", Choice, {}, opened_at=datetime.now(UTC))
    first = ada.get("/todo?text=more").text
    following = re.search(r'href="([^"]+)" rel="next"', first)
    assert following is not None
    second = ada.get(html.unescape(following[1])).text
    shown = re.findall(r"item\?id=(more-\d+)", first + second)
    assert [f"more-{number:02}" for number in range(60)] == sorted(shown)
    assert "60 open, page 2 of 2" in second
    assert 400 == ada.get("/todo?page=0").status_code
    assert 400 == ada.get("/todo?page=x").status_code


def test_an_answer_counts_and_the_page_says_so(site: Site, ada: Client) -> None:
    """After the answer the item shows its outcome and no form; it is on record once, by name."""
    page = send(ada, ITEM, CANCEL)
    assert [303] == [one.status_code for one in page.history]
    assert "Thank you, your answer counts" == heading(page.text)
    assert "The outcome is: Cancel." in page.text
    assert '<form class="card answer"' not in page.text
    assert [("refund-A-1002", "Ada", {"choice": "cancel", "order": "A-1"})] == site.items.counted


def test_an_item_is_taken_and_given_back(site: Site, address: str, ada: Client) -> None:
    """A person takes an item by a button and gives it back by another; the list says who has taken
    what, and shows the own or the free ones. Whoever is second is told who was first, and may
    answer all the same. The page tells what has happened.
    """
    page = ada.get(ITEM).text
    token = hidden(page)
    assert "Nobody takes care of this yet." in page
    taken = ada.post(f"{TAKE}take?id=refund-A-1002", data={"token": token})
    assert (200, ITEM) == (taken.status_code, f"{taken.url.path}?{taken.url.query.decode()}")
    assert "You take care of this." in taken.text
    assert "Taken by Ada" in taken.text
    assert "Taken by you" in ada.get("/todo").text
    assert ["A-1002"] == re.findall(r"item\?id=\w+-(A-\d+)", ada.get("/todo?held_by=me").text)
    assert "A-1002" not in ada.get("/todo?held_by=nobody").text
    assert 400 == ada.get("/todo?held_by=ada").status_code
    with another(address) as bob:
        sign_in(bob, site.other_key)
        page = bob.get(ITEM).text
        assert "Ada takes care of this." in page
        token_of_bob = hidden(page)
        for verb in ("take", "release"):
            refused = bob.post(f"{TAKE}{verb}?id=refund-A-1002", data={"token": token_of_bob})
            assert (409, "Somebody else takes care of this") == (
                refused.status_code,
                heading(refused.text),
            )
        done = send(bob, ITEM, CONTINUE, refused.text)
    assert "Thank you, your answer counts" == heading(done.text)
    late = ada.post(f"{TAKE}release?id=refund-A-1002", data={"token": token})
    assert "This is closed" == heading(late.text)
    told = re.findall(r"<span>(.*?)</span></li>", late.text)
    assert ["Opened", "Taken by Ada", "Answered by Bob: Continue"] == told
    assert 404 == ada.post(f"{TAKE}take?id=product-A-1005", data={"token": token}).status_code


def test_what_the_item_says_is_filled_in(ada: Client) -> None:
    """What the contract asks for to find the item is known, and nobody types it; it can be seen,
    and is shown at once where it is wrong.
    """
    page = ada.get(ITEM).text
    assert "<details>" in page
    assert "Filled in for you: Order</summary>" in page
    assert re.search(r'name="data/order"[^>]*>\nA-1001</textarea>', page)
    wrong = send(ada, ITEM, {**CANCEL, "data/order": ""}).text
    assert "<details open>" in wrong
    assert "Order: Give at least 1 character." in wrong


def test_who_has_answered_is_not_asked_again(site: Site, ada: Client) -> None:
    """A list that was read a moment too early leaves out what this browser has answered."""
    send(ada, ITEM, CANCEL)
    site.items.items["refund-A-1002"].outcome = None
    page = ada.get("/todo").text
    assert "4 open" in page
    assert "refund-A-1002" not in page


def test_the_same_form_twice_is_one_answer(site: Site, ada: Client) -> None:
    """A form that is sent again, by a second click or after "back", is a repeat."""
    page = ada.get(ITEM).text
    send(ada, ITEM, CANCEL, page)
    assert "Thank you, your answer counts" == heading(send(ada, ITEM, CANCEL, page).text)
    assert 1 == len(site.items.counted)


def test_somebody_was_faster(site: Site, address: str, ada: Client) -> None:
    """Whoever answers second learns which outcome counts."""
    page = ada.get(ITEM).text
    with another(address) as other:
        sign_in(other, site.other_key)
        send(other, ITEM, CONTINUE)
    told = send(ada, ITEM, CANCEL, page).text
    assert "Somebody was faster" == heading(told)
    assert "The outcome is: Continue." in told


def test_a_form_that_had_arrived_counts(site: Site, ada: Client) -> None:
    """Who changes a form that was not confirmed, and sends it again, is told that the first counts:
    nobody else was faster.
    """
    page = ada.get(ITEM).text
    send(ada, ITEM, CONTINUE, page)
    told = send(ada, ITEM, CANCEL, page).text
    assert "Your first answer counts" == heading(told)
    assert "The outcome is: Continue." in told


def test_who_asks_for_many_pages_waits(site: Site) -> None:
    """The rate of requests is that of pages too: by person, and by address where nobody signed in;
    whoever signs in is not held up by others at the address.
    """
    slow = Site(replace(site.settings, rate_per_second=0.5))
    slow.fill()
    with slow.served() as place, another(place) as one, another(place) as other:
        assert 200 == one.get("/todo/sign-in").status_code
        told = one.get("/todo/sign-in")
        assert (429, "Too many pages at once") == (told.status_code, heading(told.text))
        assert 1 <= int(told.headers["Retry-After"]) <= 2
        session = Sessions(SECRET).begin(datetime.now(UTC), key=keys.id_of(slow.key) or "")
        other.cookies.set(COOKIE, Sessions(SECRET).text(session))
        assert [200, 429] == [other.get("/todo").status_code for _ in range(2)]


def test_too_late(site: Site, ada: Client) -> None:
    """Whoever answers after the end learns that it changes nothing."""
    page = ada.get(ITEM).text
    site.items.items["refund-A-1002"].is_expired = True
    assert "Too late" == heading(send(ada, ITEM, CANCEL, page).text)


def test_problems_stand_beside_their_fields(site: Site, ada: Client) -> None:
    """What the form or the contract refuses is told at its field; what was typed stays."""
    address = "/todo/item?id=review-A-1001"
    first = send(
        ada, address, {"data/finding": "", "data/note": "\r\ntyped <b>", "data/calls": "x"}
    )
    assert 422 == first.status_code
    assert "What did you find? Choose one of these." in first.text
    assert "Give a whole number from 1 to 9." in first.text
    assert ">\n\ntyped &lt;b&gt;</textarea>" in first.text.replace("\r\n", "\n")
    assert 'value="x"' in first.text
    second = send(
        ada,
        address,
        {
            "data/finding": '"payment_confirmed"',
            "data/called_at": "2026-11-28T10:00",
            "data/calls": "1",
            "data/code": "abc",
        },
        first.text,
    )
    assert 422 == second.status_code
    assert "Code of the case: Give at most 3 characters. What you gave does not fit" in second.text
    assert not site.items.counted


def test_what_is_not_confirmed_is_sent_again_as_the_same_answer(site: Site, ada: Client) -> None:
    """Where nothing is known in time, the form stays, and sent again it is the same answer."""
    site.items.trouble.append(NotInTime("a test says so"))
    page = ada.get(ITEM).text
    told = send(ada, ITEM, CANCEL, page)
    assert (503, "Your answer is not confirmed yet") == (told.status_code, heading(told.text))
    assert told.headers["retry-after"]
    assert hidden(page, "answer") == hidden(told.text, "answer")
    assert re.search(r'value="&#34;cancel&#34;" checked', told.text)


def test_what_could_not_be_taken_is_not_lost(site: Site, ada: Client) -> None:
    """Where the item of a form cannot be asked for in time, the page keeps all that was typed, and
    the key of the form: sent again, twice by mistake, it is one answer.
    """
    page = ada.get(ITEM).text
    site.items.unshown = 1
    typed = {**CANCEL, "data/note": EVIL}
    told = send(ada, ITEM, typed, page)
    assert (503, "Your answer could not be taken yet") == (told.status_code, heading(told.text))
    assert told.headers["retry-after"]
    kept = {name: hidden(told.text, name) for name in ("answer", *typed)}
    assert {"answer": hidden(page, "answer"), **typed} == kept
    assert EVIL not in told.text
    for _ in range(2):
        assert "Thank you" in send(ada, ITEM, CANCEL, told.text).text
    assert 1 == len(site.items.counted)


def test_who_has_answered_before_is_told_that_another_must(site: Site, ada: Client) -> None:
    """Where four eyes are asked for, the page says so, and keeps what was typed."""
    site.items.trouble.append(SamePerson("a test says so"))
    told = send(ada, ITEM, CANCEL)
    assert (403, "Somebody else must answer this") == (told.status_code, heading(told.text))
    assert re.search(r'value="&#34;cancel&#34;" checked', told.text)
    assert not site.items.counted


@pytest.mark.parametrize("trouble", [UndecidedAnswer("secret"), RuntimeError("secret")])
def test_what_fails_is_a_page_without_a_trace(
    site: Site, ada: Client, caplog: pytest.LogCaptureFixture, trouble: Exception
) -> None:
    """An error of ours or of an author is told as a page, and says nothing of itself, neither there
    nor in the log.
    """
    site.items.trouble.append(trouble)
    told = send(ada, ITEM, CANCEL)
    assert 500 == told.status_code
    assert "secret" not in told.text
    assert not [one for one in caplog.records if "secret" in str(vars(one))]
    assert not site.items.counted


@pytest.mark.parametrize("token", ["", "x", "é"])
def test_no_form_is_taken_without_its_token(
    site: Site, address: str, ada: Client, token: str
) -> None:
    """A form that another site has made does nothing."""
    sent = {"token": token, "answer": "1", **CANCEL}
    assert 403 == ada.post(ITEM, data=sent).status_code
    assert 403 == ada.post("/todo/sign-in", data={"token": token, "key": site.key}).status_code
    for verb in ("take", "release"):
        assert 403 == ada.post(f"{TAKE}{verb}?id=refund-A-1002", data={"token": token}).status_code
    assert site.items.items["refund-A-1002"].waiting.assigned_to is None
    ada.post("/todo/sign-out", data={"token": token})
    assert "/todo" == ada.get("/todo").url.path
    with another(address) as other:
        theirs = hidden(other.get("/todo/sign-in").text)
    assert 403 == ada.post(ITEM, data={**sent, "token": theirs}).status_code
    assert not site.items.counted


def test_a_form_is_a_form_of_a_browser(site: Site, ada: Client) -> None:
    """Whatever else is sent, or too much of it, is refused."""
    token = hidden(ada.get(ITEM).text)
    for content, kind in (
        (b'{"token": "%b"}' % token.encode(), "application/json"),
        (b"token=%b&data/choice=%%ff" % token.encode(), "application/x-www-form-urlencoded"),
        (b"token=%b&a=" % token.encode() + b"x" * MOST_BODY, "application/x-www-form-urlencoded"),
        (b"token=%b" % token.encode() + b"&a=1" * 1001, "application/x-www-form-urlencoded"),
    ):
        told = ada.post(ITEM, content=content, headers={"content-type": kind})
        assert 403 == told.status_code
    assert not site.items.counted


def test_what_is_anothers_does_not_exist(ada: Client) -> None:
    """An item of another role, and one that is none, are the same page."""
    theirs, none = ada.get("/todo/item?id=product-A-1005"), ada.get("/todo/item?id=nothing")
    assert (404, 404) == (theirs.status_code, none.status_code)
    assert theirs.text == none.text
    page = ada.get(ITEM).text
    assert 404 == send(ada, "/todo/item?id=product-A-1005", CONTINUE, page).status_code


def test_data_is_text_and_nothing_runs(ada: Client) -> None:
    """Markup in data is shown as text, and the policy of the pages would run none."""
    for address in ("/todo", "/todo/item?id=review-A-0977", f"/todo?text={EVIL}"):
        page = ada.get(address)
        assert EVIL not in page.text
        assert html.escape(EVIL).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in page.text
        assert "<script" not in page.text
        assert " style=" not in page.text
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self'; ")
        assert "unsafe" not in policy
        assert "no-store" == page.headers["cache-control"]
        assert "no-referrer" == page.headers["referrer-policy"]


def test_a_link_opens_one_item_and_ends_with_it(site: Site, address: str, browser: Client) -> None:
    """A customer sees the item of the link alone; once it is over, only who answered is told."""
    link = site.links.link("product-A-1005", datetime.now(UTC) + timedelta(days=1))
    page = browser.get(link).text
    assert "Continue without a missing product?" == heading(page)
    assert "Kettle, blue" in page
    assert "A-1005 ·" not in page
    assert "Sign out" not in page
    assert "takes care" not in page
    assert "History" not in page
    mine = {"token": hidden(page)}
    assert 403 == browser.post(f"{TAKE}take?id=product-A-1005", data=mine).status_code
    told = send(browser, link, CONTINUE)
    assert "Thank you, your answer counts" == heading(told.text)
    assert "Thank you, your answer counts" == heading(browser.get(link).text)
    assert [
        ("product-A-1005", "by link", {"choice": "continue", "order": "A-1"})
    ] == site.items.counted
    with another(address) as other:
        sent = {"token": hidden(other.get("/todo/sign-in").text), **CANCEL}
        for ended in (other.get(link), other.post(link, data=sent)):
            assert (404, "There is nothing here") == (ended.status_code, heading(ended.text))
    assert 1 == len(site.items.counted)


def test_what_was_not_confirmed_by_a_link_is_sent_again(site: Site, browser: Client) -> None:
    """Whoever has a link and no response sends the form once more, and is told that it counts; with
    other words, that the first counts.
    """
    link = site.links.link("product-A-1005", datetime.now(UTC) + timedelta(days=1))
    page = browser.get(link).text
    site.items.trouble.append(NotInTime("slow"))
    told = send(browser, link, CONTINUE)
    assert (503, "Your answer is not confirmed yet") == (told.status_code, heading(told.text))
    send(browser, link, CONTINUE, page)  # it arrived all the same
    browser.cookies.clear()
    form = {"token": hidden(browser.get("/todo/sign-in").text), "answer": hidden(page, "answer")}
    again = browser.post(link, data={**form, **CONTINUE})
    assert "Thank you, your answer counts" == heading(again.text)
    browser.cookies.clear()
    form["token"] = hidden(browser.get("/todo/sign-in").text)
    changed = browser.post(link, data={**form, **CANCEL})
    assert "Your first answer counts" == heading(changed.text)
    assert 1 == len(site.items.counted)


def test_every_wrong_link_is_the_same_page(site: Site, browser: Client) -> None:
    """Forged, altered, of another item, too old: one page, which tells nothing."""
    now = datetime.now(UTC)
    link = site.links.link("product-A-1005", now + timedelta(days=1))
    wrong = [
        link[:-1],
        link.replace("A-1005", "A-1004"),
        link.replace("until=", "until=9"),
        "/todo/link",
        site.links.link("product-A-1005", now - timedelta(seconds=1)),
        site.links.link("no-item", None),
        "/todo/link?id=product-A-1005&until=&signature=%ff",
    ]
    pages = [browser.get(one) for one in wrong]
    assert {404} == {page.status_code for page in pages}
    assert 1 == len({page.text for page in pages})
    form = browser.get(link).text
    for one in wrong:
        assert 404 == send(browser, one, CONTINUE, form).status_code
    assert not site.items.counted


def test_a_link_in_the_browser_of_staff_is_still_a_link(site: Site, ada: Client) -> None:
    """Who has signed in answers by a link as whoever has the link, not as themselves."""
    link = site.links.link("product-A-1005", None)
    assert "Ada" not in ada.get(link).text
    send(ada, link, CONTINUE)
    assert ["by link"] == [actor for _, actor, _ in site.items.counted]


def test_another_site_signs_nobody_out(ada: Client) -> None:
    """A browser keeps the cookie back where another site has led here: the page asks once more,
    and leaves the session as it is.
    """
    cookie = ada.cookies[COOKIE]
    form = {"token": hidden(ada.get(ITEM).text), **CANCEL}
    ada.cookies.clear()
    page = ada.get("/todo", headers={"sec-fetch-site": "cross-site"})
    assert 'http-equiv="refresh" content="0"' in page.text
    assert "set-cookie" not in page.headers
    sent = ada.post(ITEM, data=form, headers={"sec-fetch-site": "cross-site"})
    assert (403, False) == (sent.status_code, "set-cookie" in sent.headers)
    ada.cookies.set(COOKIE, cookie)
    assert "Your items" == heading(ada.get("/todo", headers={"sec-fetch-site": "same-origin"}).text)


def test_styles_are_kept_by_their_content(ada: Client) -> None:
    """The styles are a file of ours, kept for long under a name that changes with them."""
    address = re.search(r'href="(/todo/static/todo-\w+\.css)"', ada.get("/todo").text)
    assert address is not None
    styles = ada.get(address[1])
    assert "text/css; charset=utf-8" == styles.headers["content-type"]
    assert "immutable" in styles.headers["cache-control"]
    assert 404 == ada.get("/todo/static/..%2Frouter.py").status_code


def test_nobody_is_signed_out_where_keys_are_unknown(
    site: Site, ada: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While nobody can say which keys count, pages ask for patience, and sessions stay."""

    def fail(_: str) -> None:
        raise NotInTime("a test says so")

    with monkeypatch.context() as patched:
        patched.setattr(site.ring, "holder", fail)
        page = ada.get("/todo")
        assert (503, True) == (page.status_code, "retry-after" in page.headers)
    assert "Your items" == heading(ada.get("/todo").text)


@pytest.mark.parametrize("is_behind_proxy", [True, False])
def test_behind_tls_the_cookie_goes_no_other_way(is_behind_proxy: bool) -> None:
    """Where the world speaks TLS, browsers send the cookie by TLS alone; no secret is needed."""
    settings = TodoSettings(behind_proxy=is_behind_proxy)
    with Site(settings).served() as address, another(address) as browser:
        cookie = browser.get("/todo/sign-in").headers["set-cookie"]
    assert is_behind_proxy == ("secure" in cookie.lower().split("; "))


def test_the_address_of_the_server_leads_to_the_pages(browser: Client) -> None:
    """Who knows the server by its name alone finds the way in."""
    assert "/todo/sign-in" == browser.get("/").url.path
