"""The pages: who signs in lists, looks, takes and answers; who has a link answers one item."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from delta_outbox.core.errors import OutboxError
from delta_outbox.core.redaction import without_text
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo import keys
from delta_outbox.todo.credentials import Credentials, Unrecognised
from delta_outbox.todo.desk import HELD_BY, BadQuestion, Desk, ItemDetail, ItemFilters, NoSuchItem
from delta_outbox.todo.item_thread import NotInTime
from delta_outbox.todo.pages import wording
from delta_outbox.todo.pages.fields import human
from delta_outbox.todo.pages.form import Form, Texts, is_filled_in_by, sentence
from delta_outbox.todo.pages.rendering import STATIC, anchor
from delta_outbox.todo.pages.visits import (
    HEADERS,
    SIGN_IN,
    NotSent,
    Visit,
    Visits,
    comes_from_elsewhere,
    network_of,
)
from delta_outbox.todo.people import Person
from delta_outbox.todo.rates import Rates
from delta_outbox.workflow_engine.four_eyes import SamePerson
from delta_outbox.workflow_engine.item_answers import (
    AnsweredAlready,
    AnsweredTooLate,
    KeyUsedAgain,
)
from delta_outbox.workflow_engine.item_decisions import BadAnswer, UndecidedAnswer
from delta_outbox.workflow_engine.item_holds import HeldByAnother, NotOpen
from delta_outbox.workflow_engine.item_links import PATH as LINK_PATH

logger: Final = logging.getLogger(__name__)

BY_LINK: Final = "by link"  # the name of who answers by a link
WRONG_KEYS_PER_SECOND: Final = 0.5  # of one address
WRONG_KEYS_AT_ONCE: Final = 10

_Handler = Callable[["Pages", Visit], Awaitable[Response]]


class Pages:
    """The pages over a desk. They need no JavaScript, and keep nothing but a signed cookie.

    Args:
        desk: the items.
        settings: `[todo]`. Without `link_secret` there are no links, and everybody signs in anew
            when the server was started again.
        credentials: recognise people by their API keys.
        rates: how often each may ask; those whom nobody knows are counted by their address.

    Raises:
        BadSettings: `link_secret` is too short.
    """

    def __init__(
        self, desk: Desk, settings: TodoSettings, *, credentials: Credentials, rates: Rates
    ) -> None:
        self._desk = desk
        self._credentials = credentials
        self._clock = desk.clock
        self._behind_proxy = settings.behind_proxy
        self._rates = rates
        self._wrong_keys = Rates(WRONG_KEYS_PER_SECOND, at_once=WRONG_KEYS_AT_ONCE)
        self._visits = Visits(settings, credentials=credentials, clock=desk.clock)

    def router(self) -> APIRouter:
        """Return the routes: all below /todo, and the way there."""
        router = APIRouter(include_in_schema=False)
        for path, method, handler in (
            (wording.HOME, "GET", Pages._list),
            (SIGN_IN, "GET", Pages._sign_in_page),
            (SIGN_IN, "POST", Pages._sign_in),
            ("/todo/sign-out", "POST", Pages._sign_out),
            (wording.ITEM_PATH, "GET", Pages._item),
            (wording.ITEM_PATH, "POST", Pages._answer),
            (wording.TAKE_PATH, "POST", Pages._take),
            (wording.RELEASE_PATH, "POST", Pages._release),
            (LINK_PATH, "GET", Pages._by_link),
            (LINK_PATH, "POST", Pages._answer_by_link),
        ):
            router.add_api_route(path, self._served(handler), methods=[method])
        router.add_api_route("/", _way_in, methods=["GET"])
        router.add_api_route("/todo/static/{name}", _static, methods=["GET"])
        return router

    def _served(self, handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return a route: whatever goes wrong is a page, without a trace."""

        async def serve(request: Request) -> Response:
            if comes_from_elsewhere(request):
                return self._visits.note(None, 200, wording.CONTINUE)
            visit = self._visits.visit(request)
            try:
                visit = await self._visits.recognised(visit)
                if wait := self._rates.wait(self._counted(visit)):
                    page = self._visits.note(visit, 429, wording.too_often(wait))
                    page.headers["Retry-After"] = str(wait)
                    return page
                return await handler(self, visit)
            except NoSuchItem:
                return self._visits.note(visit, 404, wording.NOT_FOUND)
            except NotSent:
                is_of_item = request.url.path in (wording.ITEM_PATH, LINK_PATH)
                note = replace(wording.NOT_SENT, next=visit.address if is_of_item else wording.HOME)
                return self._visits.note(visit, 403, note)
            except BadQuestion:
                return self._visits.note(visit, 400, wording.BAD_ADDRESS)
            except OutboxError as error:
                logger.warning("page_failed", extra={"error": error.code})
                return self._visits.note(visit, 503 if error.retryable else 500, wording.TRY_AGAIN)
            except Exception as error:  # noqa: BLE001 - who looks at a page gets one
                logger.error("page_failed", extra={"error": without_text(error)})
                return self._visits.note(visit, 500, wording.TRY_AGAIN)

        return serve

    def _counted(self, visit: Visit) -> str:
        """Return the name by which a visit is counted, as the API counts requests."""
        if visit.person is not None and not visit.is_link:
            return visit.person.name
        return f"address {network_of(visit.request, behind_proxy=self._behind_proxy)}"

    # Signing in and out

    async def _sign_in_page(self, visit: Visit) -> Response:
        if visit.person is not None:
            return self._visits.to(visit, wording.HOME)
        return self._visits.page(visit, "sign_in.html", next=_own_page(visit.query.get("next", "")))

    async def _sign_in(self, visit: Visit) -> Response:
        sent = await self._visits.sent(visit)
        key, aim = sent.get("key", [""])[0].strip(), _own_page(sent.get("next", [""])[0])
        key_id = keys.id_of(key)
        network = network_of(visit.request, behind_proxy=self._behind_proxy)
        wait = self._wrong_keys.wait(network)
        if wait:
            problem = f"Too many wrong keys came from your address. Try again in {wait} seconds."
            page = self._visits.page(visit, "sign_in.html", status=429, next=aim, problem=problem)
            page.headers["Retry-After"] = str(wait)
            return page
        try:
            if key_id is None:  # a JWT is not for a person to type
                raise Unrecognised
            await self._credentials.person(key)
        except Unrecognised:
            problem = "This key is not known here. Look whether all of it is there."
            return self._visits.page(visit, "sign_in.html", status=403, next=aim, problem=problem)
        except BaseException:  # nobody can check it now, so nobody knows that it is wrong
            self._wrong_keys.give_back(network)
            raise
        self._wrong_keys.give_back(network)
        # A session of its own: who knew the one before knows nothing of this one.
        session = self._visits.sessions.begin(self._clock.now(), key=key_id)
        return self._visits.to(visit, aim, session)

    async def _sign_out(self, visit: Visit) -> Response:
        await self._visits.sent(visit)
        return self._visits.to(visit, SIGN_IN, self._visits.sessions.begin(self._clock.now()))

    # Items

    async def _list(self, visit: Visit) -> Response:
        if visit.person is None:
            return self._visits.to_sign_in(visit)
        names = ("text", "workflow", "task", "role", "held_by")
        asked = {name: visit.query.get(name, "") for name in names}
        if asked["held_by"] not in ("", *HELD_BY):
            raise BadQuestion(f"`held_by` must be {' or '.join(HELD_BY)}, or empty.")
        filters = ItemFilters(
            text=asked["text"],
            workflow=asked["workflow"],
            task=asked["task"],
            role=asked["role"],
            held_by=asked["held_by"],
        )
        number = visit.query.get("page", "1")
        if not number.isdecimal() or len(number) > 6:
            raise BadQuestion(f"`page` must be a number from 1. Got: {len(number)} characters.")
        page = await self._desk.items(visit.person, filters, int(number))
        own = [one for one in self._desk.types if not visit.person.roles.isdisjoint(one.roles)]
        roles = {role for one in own for role in one.roles} & visit.person.roles
        choices = {
            "workflow": {one.workflow for one in own},
            "task": {one.task for one in own},
            "role": roles,
        }

        def at(place: int) -> str:
            given = {name: text for name, text in asked.items() if text}
            return f"{wording.HOME}?{urlencode({**given, 'page': place})}"

        # A list may be some seconds old: who has just answered is not asked again.
        items = [one for one in page.items if visit.session.receipt(one.task_id) is None]
        count = f"{page.total - len(page.items) + len(items)} open"
        count += ", and more that expire later" if page.is_cut else ""
        return self._visits.page(
            visit,
            "list.html",
            groups=list(wording.groups(items, self._clock.now(), visit.person.name)),
            count=count + (f", page {page.page} of {page.pages}" if page.pages > 1 else ""),
            filters=filters,
            is_filtered=any(asked.values()),
            selects=[
                (name, name.capitalize(), asked[name], sorted(options))
                for name, options in choices.items()
                if len(options) > 1
            ]
            + [("held_by", "Taken by", asked["held_by"], HELD_BY)],
            before=at(page.page - 1) if page.page > 1 else "",
            after=at(page.page + 1) if page.page < page.pages else "",
        )

    async def _item(self, visit: Visit) -> Response:
        if visit.person is None:
            return self._visits.to_sign_in(visit)
        item = await self._desk.item(visit.person, visit.query.get("id", ""))
        return self._show(visit, item)

    async def _answer(self, visit: Visit) -> Response:
        sent = await self._visits.sent(visit)
        if visit.person is None:
            raise NotSent
        return await self._answered(visit, visit.person, visit.query.get("id", ""), sent)

    async def _take(self, visit: Visit) -> Response:
        return await self._hold(visit, gives_back=False)

    async def _release(self, visit: Visit) -> Response:
        return await self._hold(visit, gives_back=True)

    async def _hold(self, visit: Visit, *, gives_back: bool) -> Response:
        await self._visits.sent(visit)
        if visit.person is None:
            raise NotSent
        task_id = visit.query.get("id", "")
        try:
            await self._desk.hold(visit.person, task_id, gives_back=gives_back)
        except HeldByAnother as error:
            item = await self._desk.item(visit.person, task_id)
            return self._show(visit, item, status=409, told=wording.taken_by(error.holder))
        except NotOpen:
            pass  # its page says so
        return self._visits.to(visit, wording.item_address(task_id))

    # Links

    async def _by_link(self, visit: Visit) -> Response:
        person = self._linked(visit)
        item = await self._desk.item(person, visit.query["id"])
        receipt = visit.session.receipt(visit.query["id"])
        if receipt is not None:
            told = wording.told(item.document, receipt)
            assert told is not None
            return self._visits.note(visit, 200, wording.Note(heading=told.heading, text=told.text))
        if not item.is_open:
            raise NoSuchItem
        return self._show(visit, item)

    async def _answer_by_link(self, visit: Visit) -> Response:
        person = self._linked(visit)
        sent = await self._visits.sent(visit)
        return await self._answered(visit, person, visit.query["id"], sent)

    def _linked(self, visit: Visit) -> Person:
        """Return who a link makes of somebody.

        Raises:
            NoSuchItem: it opens nothing.
        """
        task_id, until, signature = (
            visit.query.get(name, "") for name in ("id", "until", "signature")
        )
        if not self._visits.links.opens(task_id, until, signature, now=self._clock.now()):
            raise NoSuchItem
        return Person(name=BY_LINK, only=task_id)

    # Answers

    async def _answered(self, visit: Visit, person: Person, task_id: str, sent: Texts) -> Response:
        try:
            item = await self._desk.item(person, task_id)
        except NotInTime:  # what was typed is not lost, nor the key of the form
            note = wording.SEND_AGAIN
            return self._visits.page(
                visit, "again.html", status=503, note=note, action=visit.address, sent=sent
            )
        # Whoever had no response sends it again: a repeat of the answer is told so, nobody else.
        is_answered = any(one["what"] == "answered" for one in item.document["history"])
        if visit.is_link and not item.is_open and not is_answered:
            raise NoSuchItem
        return await self._judged(visit, person, item, sent)

    async def _judged(
        self, visit: Visit, person: Person, item: ItemDetail, sent: Texts
    ) -> Response:
        task_id = item.document["task_id"]
        form = Form(item.document["contract"])
        filled = form.read(sent)
        problems: Mapping[str, str] = filled.problems
        if problems and not item.is_open:
            return self._visits.to(visit, visit.address)
        key = sent.get("answer", [""])[0]
        if not problems:
            try:
                done = await self._desk.answer(person, task_id, filled.data, key or None)
            except AnsweredAlready as error:
                came = _came(error, is_told=item.is_open or not visit.is_link)
            except AnsweredTooLate:
                came = "late", ""
            except BadAnswer as error:
                problems = _by_field(form, error) or {"": "The answer does not fit this item."}
            except SamePerson as error:
                return self._show(visit, item, status=403, sent=sent, told=wording.refused(error))
            except UndecidedAnswer:
                return self._show(visit, item, status=500, sent=sent, told=wording.UNDECIDED)
            except OutboxError as error:
                if not error.retryable:
                    raise
                # With the same key: sent again, it is the same answer.
                return self._show(visit, item, status=503, sent=sent, told=wording.UNKNOWN, key=key)
            else:
                came = "answered", done.outcome
        if problems:
            return self._show(visit, item, status=422, sent=sent, problems=problems)
        return self._visits.to(visit, visit.address, visit.session.with_receipt(task_id, *came))

    def _show(
        self,
        visit: Visit,
        item: ItemDetail,
        *,
        status: int = 200,
        sent: Texts | None = None,
        problems: Mapping[str, str] | None = None,
        told: wording.Told | None = None,
        key: str = "",
    ) -> Response:
        """Return the page of an item, with its form if it waits for an answer."""
        document = item.document
        stands = wording.told(document, visit.session.receipt(document["task_id"]))
        is_asked = stands is None or sent is not None
        form = Form(document["contract"]) if is_asked else None
        person = None if visit.is_link else visit.person
        fields = form.fields if form else ()
        known = form.known(document["read_model"]) if form else {}
        filled_in = [one for one in fields if is_filled_in_by(one, known)]
        shown: dict[str, str] = {}
        summary: list[tuple[str, str]] = []
        for pointer, text in (problems or {}).items():
            one = form.field_at(pointer) if form else None
            if one is not None:
                shown[one.pointer] = text
            named = f"{one.title}{' ' if one.title.endswith('?') else ': '}{text}" if one else text
            summary.append((anchor(one) if one else "", named))
        return self._visits.page(
            visit,
            "item.html",
            status=status,
            heading=document.get("title") or document["task"],
            about=wording.about(document, self._clock.now()),
            kept=None
            if visit.is_link
            else f"{document['instance']} · {human(document['workflow'])}",
            read_model=document["read_model"],
            told=told or stands,
            # Not beside what was typed, which would be lost.
            holding=wording.holding(document, person.name)
            if person and stands is None and sent is None
            else None,
            happenings=wording.happenings(document) if person else (),
            fields=[one for one in fields if one not in filled_in],
            filled_in=filled_in,
            texts=form.texts(known) if form and sent is None else sent or {},
            problems=shown,
            summary=summary,
            action=visit.address if visit.is_link else wording.item_address(document["task_id"]),
            answer=key or uuid.uuid4().hex,
        )


def _came(error: AnsweredAlready, *, is_told: bool) -> tuple[str, str]:
    """Return what came of an answer if another one counts.

    Args:
        error: says so.
        is_told: to whoever answers; else it is as if there were no item.
    """
    if isinstance(error, KeyUsedAgain):  # that of the form: it was sent before, with other words
        return "before", error.outcome
    if not is_told:
        raise NoSuchItem
    return "faster", error.outcome


def _by_field(form: Form, error: BadAnswer) -> dict[str, str]:
    """Return what is wrong with an answer: what its field asks for, and the rule that it breaks."""
    found: dict[str, str] = {}
    for one in error.problems:
        field = form.field_at(one.pointer)
        asked = f"{sentence(field)} " if field is not None and field.rule else ""
        found.setdefault(one.pointer, f"{asked}What you gave does not fit: {one.rule}.")
    return found


async def _way_in() -> Response:
    return RedirectResponse(wording.HOME, 303, dict(HEADERS))


async def _static(name: str) -> Response:
    if name not in STATIC:
        return Response(status_code=404, headers=dict(HEADERS))
    kind, content = STATIC[name]
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(content, 200, headers, kind)


def _own_page(address: str) -> str:
    """Return an address that leads to a page of ours, whatever was asked for."""
    is_own = address.startswith((f"{wording.HOME}?", f"{wording.ITEM_PATH}?"))
    return address if is_own and address.isprintable() else wording.HOME
