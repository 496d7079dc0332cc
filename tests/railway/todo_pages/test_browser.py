"""The pages in a real browser."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Error, Page, Route, expect, sync_playwright
from tests.publishers.local_server import find_program
from tests.unit.todo.pages.site import Choice, Site

from delta_outbox.core.instants import iso_text
from delta_outbox.workflow_engine.item_history import Happening

pytestmark = pytest.mark.rest

# The folder that the pictures of docs/railway/todo-pages.md are written into, if it is named.
PICTURES = os.environ.get("OUTBOX_TESTS_PICTURES")
PICTURED = ("list-light", "problems-dark", "item-light-phone", "link-light-phone")
PHONE = {"width": 360, "height": 740}
DESK = {"width": 860, "height": 900}
OUTCOME = "What did you find?"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start the browser of this machine."""
    program = find_program("chromium", "chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture
def site() -> Site:
    """Return pages with some items."""
    made = Site()
    made.fill()
    return made


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    """Serve the pages."""
    with site.served() as found:
        yield found


@pytest.fixture
def opened(chromium: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Open windows; each is a browser of its own. At the end, none has asked another server, and
    nothing was refused by the policy of the pages.
    """
    contexts: list[BrowserContext] = []
    asked: list[str] = []
    said: list[str] = []

    def open_one(**options: Any) -> Page:
        context = chromium.new_context(
            **{"base_url": address, "viewport": DESK, "locale": "en-GB", **options}
        )
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.set_default_timeout(20_000)  # milliseconds
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert [] == [one for one in asked if not one.startswith((address, ELSEWHERE))]
    assert [] == [text for text in said if "Content Security Policy" in text or "Error" in text]


ELSEWHERE = "http://localhost:1/"  # another site than 127.0.0.1; a test answers for it


def sign_in(page: Page, key: str) -> None:
    """Sign in as a person does."""
    page.goto("/todo")
    page.get_by_label("Your key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Your items")).to_be_visible()


def fill_review(page: Page) -> None:
    """Fill in all that the review asks for."""
    page.get_by_label("Payment confirmed").check()
    page.get_by_label("When did you talk").fill("2026-11-28T10:30")
    page.get_by_label("Code of the case").fill("ABC")


def picture(page: Page, name: str) -> None:
    """Keep a picture for the docs, if they have it and that is asked for."""
    if PICTURES is not None and name in PICTURED:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


@pytest.mark.parametrize("with_script", [False, True], ids=["without_javascript", "javascript"])
def test_a_person_answers_an_item(
    site: Site, opened: Callable[..., Page], with_script: bool
) -> None:
    """Sign in, look, err, mend it, answer, and see what came of it; "back" shows the truth, and
    nothing is sent twice.
    """
    page = opened(java_script_enabled=with_script)
    page.goto("/todo")
    page.get_by_label("Your key").fill("not a key")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This key is not known here")).to_be_visible()
    sign_in(page, site.key)
    page.get_by_role("link", name="Customer support review").nth(1).click()
    expect(page.get_by_text("Maria Lindqvist")).to_be_visible()
    page.get_by_label("Note").fill("Two lines,\nthe second one.")
    page.get_by_role("button", name="Send answer").click()
    expect(page.get_by_role("alert")).to_contain_text(f"{OUTCOME} Choose one of these.")
    expect(page.get_by_label("Note")).to_have_value("Two lines,\nthe second one.")
    assert not site.items.counted
    fill_review(page)
    page.get_by_role("button", name="Send answer").click()
    expect(page.get_by_role("status")).to_contain_text("Thank you, your answer counts")
    expect(page.get_by_role("button", name="Send answer")).to_have_count(0)
    # Before it, the page with the problem: the browser asks whether to send that form again.
    with pytest.raises(Error, match="ERR_CACHE_MISS"):
        page.go_back()
    page = page.context.new_page()
    page.goto("/todo")
    expect(page.get_by_role("link", name="Customer support review")).to_have_count(2)
    assert [
        (
            "review-A-1001",
            "Ada",
            {
                "finding": "payment_confirmed",
                "called_at": "2026-11-28T10:30:00Z",
                "calls": 1,
                "code": "ABC",
                "note": "Two lines,\nthe second one.",
                "refund": None,
                "order": "A-1001",
            },
        )
    ] == site.items.counted


@pytest.mark.parametrize("with_script", [False, True], ids=["without_javascript", "javascript"])
def test_a_person_takes_an_item_and_gives_it_back(
    site: Site, opened: Callable[..., Page], with_script: bool
) -> None:
    """Who takes an item finds it among the own ones, and everybody sees who holds it; the second
    is told so. Given back it is free. "Back" and a reload do nothing twice.
    """
    first, second = opened(java_script_enabled=with_script), opened()
    for page, key in ((first, site.key), (second, site.other_key)):
        sign_in(page, key)
        page.get_by_role("link", name="Check a refund").first.click()
        expect(page.get_by_text("Nobody takes care of this yet.")).to_be_visible()
    first.get_by_role("button", name="Take it").click()
    expect(first.get_by_text("You take care of this.")).to_be_visible()
    expect(first.get_by_role("listitem").filter(has_text="Taken by Ada")).to_be_visible()
    first.reload()
    expect(first.get_by_role("listitem").filter(has_text="Taken by Ada")).to_have_count(1)
    second.get_by_role("button", name="Take it").click()
    expect(second.get_by_role("alert")).to_contain_text("Ada has taken it.")
    expect(second.get_by_role("button", name="Send answer")).to_be_visible()
    first.get_by_role("link", name="Your items").click()
    expect(first.get_by_text("Taken by you")).to_be_visible()
    first.get_by_label("Taken by").select_option("Me")
    first.get_by_role("button", name="Show").click()
    expect(first.get_by_text("1 open")).to_be_visible()
    first.get_by_role("link", name="Check a refund").click()
    first.get_by_role("button", name="Give it back").click()
    expect(first.get_by_text("Nobody takes care of this yet.")).to_be_visible()
    first.go_back()
    expect(first.get_by_role("heading", name="Check a refund")).to_be_visible()
    second.goto("/todo?held_by=nobody")
    expect(second.get_by_text("5 open")).to_be_visible()
    assert not site.items.counted


def test_two_people_at_once(site: Site, opened: Callable[..., Page]) -> None:
    """Of two people with the same item open, the second is told who it was not."""
    first, second = opened(), opened()
    for page, key in ((first, site.key), (second, site.other_key)):
        sign_in(page, key)
        page.get_by_role("link", name="Check a refund").first.click()
    for page, choice in ((first, "Continue"), (second, "Cancel")):
        page.get_by_label(choice).check()
        page.get_by_role("button", name="Send answer").click()
    for _ in range(2):
        expect(first.get_by_role("status")).to_contain_text("Thank you, your answer counts")
        expect(first.get_by_role("button", name="Send answer")).to_have_count(0)
        first.go_back()
    expect(second.get_by_role("alert")).to_contain_text("Somebody was faster")
    expect(second.get_by_role("alert")).to_contain_text("The outcome is: Continue.")
    assert 1 == len(site.items.counted)


def test_an_answer_that_is_too_late(site: Site, opened: Callable[..., Page]) -> None:
    """Whoever answers after the end is told so."""
    page = opened()
    sign_in(page, site.key)
    page.get_by_role("link", name="Check a refund").first.click()
    site.items.items["refund-A-1002"].is_expired = True
    page.get_by_label("Cancel").check()
    page.get_by_role("button", name="Send answer").click()
    expect(page.get_by_role("alert")).to_contain_text("Too late")


def test_the_keyboard_is_enough(site: Site, opened: Callable[..., Page]) -> None:
    """All is done with Tab, arrows, Space and Enter, and it is always seen where one is."""
    page = opened()
    page.goto("/todo")
    keys = page.keyboard

    def until(text: str) -> None:
        """Press Tab until something is focused."""
        for _ in range(40):
            keys.press("Tab")
            focused = page.evaluate(
                "() => {const e = document.activeElement;"
                "return [e.innerText || (e.labels && e.labels[0] && e.labels[0].innerText) || '',"
                "getComputedStyle(e).outlineStyle]}"
            )
            assert "none" != focused[1], f"nobody sees that {focused[0]!r} is focused"
            if focused[0].startswith(text):
                return
        raise AssertionError(f"Tab does not lead to {text!r}")

    expect(page.get_by_label("Your key")).to_be_focused()
    keys.type(site.key)
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Your items")).to_be_visible()
    until("Check a refund")
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Check a refund")).to_be_visible()
    until("Send answer")
    keys.press("Enter")
    expect(page.get_by_role("alert")).to_be_focused()
    until("How shall we go on?")
    keys.press("Enter")
    keys.press("Space")
    keys.press("ArrowDown")
    expect(page.get_by_label("Cancel")).to_be_checked()
    until("Send answer")
    keys.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Thank you, your answer counts")
    assert [("refund-A-1002", "Ada", {"choice": "cancel", "order": "A-1001"})] == site.items.counted


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_suit_everybody(site: Site, opened: Callable[..., Page], scheme: str) -> None:
    """The checker axe finds nothing to mend on any page, on a desk and on a phone, light and
    dark; nothing is wider than a phone; dark is dark.
    """
    link = site.links.link("product-A-1005", datetime.now(UTC) + timedelta(days=1))
    page = opened(color_scheme=scheme)
    axe = Axe()
    site.items.items["review-A-0977"].waiting = replace(
        site.items.items["review-A-0977"].waiting, instance="A-0977"
    )

    def check(name: str) -> None:
        for size in (DESK, PHONE):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            found = axe.run(page)
            assert 0 == found.violations_count, f"{name}: {found.generate_report()}"
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} is {wide} pixels wider than a window of {size['width']}"
            picture(page, f"{name}-{scheme}{'-phone' if size is PHONE else ''}")
        page.set_viewport_size(DESK)  # type: ignore[arg-type]

    for name, holder in (("review-A-1001", "Ada"), ("review-A-1004", "Bob")):
        held = site.items.items[name]
        held.waiting = replace(held.waiting, assigned_to=holder)
        at = iso_text(datetime.now(UTC) - timedelta(minutes=50))
        held.history.append(Happening(at=at, what="taken", by=holder))
    page.goto("/todo")
    check("sign-in")
    sign_in(page, site.key)
    check("list")
    page.goto("/todo?text=unheard")
    check("nothing")
    page.goto("/todo/item?id=review-A-1004")
    check("held")
    page.goto("/todo/item?id=refund-A-1002")
    check("free")
    page.goto("/todo/item?id=review-A-1001")
    check("item")
    page.get_by_role("button", name="Send answer").click()
    check("problems")
    page.goto("/todo/item?id=nothing")
    check("not-found")
    page.goto("/todo/item?id=refund-A-1003")
    page.get_by_label("Cancel").check()
    page.get_by_role("button", name="Send answer").click()
    check("thanks")
    page.goto(link)
    check("link")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (scheme == "dark") == (sum(map(int, re.findall(r"\d+", background))) < 3 * 128)


def test_no_markup_of_data_is_run(site: Site, opened: Callable[..., Page]) -> None:
    """A script in data is text, also in a browser that knows no policy."""
    page = opened(bypass_csp=True)
    sign_in(page, site.key)
    for address in ("/todo", "/todo/item?id=review-A-0977"):
        page.goto(address)
        expect(page.get_by_text("<script>document.title").first).to_be_visible()
        assert "taken" not in page.title()


def elsewhere(page: Page, body: str) -> None:
    """Show a page of another site."""

    def answer(route: Route) -> None:
        route.fulfill(content_type="text/html", body=body)

    page.route(f"{ELSEWHERE}**", answer)
    page.goto(ELSEWHERE)


def test_no_other_site_answers_for_a_person(
    site: Site, opened: Callable[..., Page], address: str
) -> None:
    """A form of another site does nothing, and whoever is signed in stays so."""
    page = opened()
    sign_in(page, site.key)
    elsewhere(
        page,
        f'<form method="post" action="{address}/todo/item?id=refund-A-1002">'
        '<input name="data/choice" value="&quot;cancel&quot;"><button>Win</button></form>',
    )
    page.get_by_role("button", name="Win").click()
    expect(page.get_by_role("heading", name="Nothing was sent")).to_be_visible()
    assert not site.items.counted
    page.goto("/todo")
    expect(page.get_by_text("Ada")).to_be_visible()


def test_a_mail_leads_whoever_is_signed_in_to_the_item(
    site: Site, opened: Callable[..., Page], address: str
) -> None:
    """Who follows a link of another site is still signed in."""
    page = opened(java_script_enabled=False)
    sign_in(page, site.key)
    elsewhere(page, f'<a href="{address}/todo/item?id=refund-A-1002">An item waits</a>')
    page.get_by_role("link", name="An item waits").click()
    expect(page.get_by_role("heading", name="Check a refund")).to_be_visible()
    expect(page.get_by_text("Ada")).to_be_visible()


def test_a_customer_answers_by_a_link(
    site: Site, opened: Callable[..., Page], address: str
) -> None:
    """A link in a mail leads to one item; after the answer it leads nobody else there."""
    link = site.links.link("product-A-1005", datetime.now(UTC) + timedelta(days=1))
    page, other = opened(viewport=PHONE, has_touch=True), opened()
    elsewhere(page, f'<a href="{address}{link.replace("&", "&amp;")}">Your order</a>')
    page.get_by_role("link", name="Your order").click()
    expect(page.get_by_text("Kettle, blue")).to_be_visible()
    page.get_by_label("Continue").check()
    page.get_by_role("button", name="Send answer").click()
    expect(page.get_by_role("heading", name="Thank you, your answer counts")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("button", name="Send answer")).to_have_count(0)
    other.goto(link)
    expect(other.get_by_role("heading", name="There is nothing here")).to_be_visible()
    assert [
        ("product-A-1005", "by link", {"choice": "continue", "order": "A-1005"})
    ] == site.items.counted


def test_search_filters_and_pages(site: Site, opened: Callable[..., Page]) -> None:
    """A long list is searched, filtered, and read page by page."""
    for number in range(60):
        site.items.add(f"more-{number:02}", Choice, {}, opened_at=datetime.now(UTC), instance="M")
    page = opened()
    sign_in(page, site.key)
    expect(page.get_by_text("65 open, page 1 of 2")).to_be_visible()
    page.get_by_role("link", name="Later →").click()
    expect(page.get_by_text("65 open, page 2 of 2")).to_be_visible()
    page.get_by_label("Task").select_option("Check refund")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("2 open")).to_be_visible()
    page.get_by_label("Search").fill("1003")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("1 open")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_text("65 open")).to_be_visible()
