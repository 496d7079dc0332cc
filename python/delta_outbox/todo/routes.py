"""The API: for each type of items, lists, items, who holds them, answers."""

# Without postponed annotations: FastAPI reads those of functions made here.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from delta_outbox.core.errors import OutboxError
from delta_outbox.todo.credentials import Credentials, Unrecognised
from delta_outbox.todo.desk import (
    MOST_KEY,
    MOST_ON_PAGE,
    PAGE,
    Answered,
    Desk,
    Held,
    HeldBy,
    ItemFilters,
    ItemPage,
    NoSuchItem,
)
from delta_outbox.todo.documents import Detail, Failure, Noted
from delta_outbox.todo.limits import body_of, check_json_type, object_of, read_object
from delta_outbox.todo.openapi import contract_reference, without_types
from delta_outbox.todo.people import Person
from delta_outbox.todo.rates import Rates
from delta_outbox.todo.signatures import Signature
from delta_outbox.workflow_engine.item_answers import AnsweredAlready, AnsweredTooLate
from delta_outbox.workflow_engine.items import ItemType

_NOTED: Final[dict[int | str, dict[str, Any]]] = {
    202: {"model": Noted, "description": "It changes nothing; nobody need send it again."}
}
_SIGNED: Final = "A third party that signs the body by the scheme of the settings needs no key."
_MEANINGS: Final = {
    400: "The request breaks a rule.",
    401: "Nobody is recognised.",
    403: "You have answered another item of the instance; somebody else must answer this one.",
    404: "There is no such item for you.",
    408: "The body has not arrived in time.",
    409: "Another answer counts, or somebody else holds the item; its outcome, or who, is named.",
    410: "The item is over; an answer is on record, and changes nothing.",
    413: "The body is too large.",
    415: "The body is no JSON.",
    422: "The answer breaks the contract, or its key was used for another one.",
    429: "Too many requests; see Retry-After.",
    500: "The item cannot be decided now; it stays open.",
    503: "Not known yet; send the same again after Retry-After.",
}
_ASKED: Final = (400, 401, 404, 422, 429, 500, 503)
_HELD: Final = (*_ASKED, 409, 410)
_ANSWERED: Final = tuple(_MEANINGS)


IdempotencyKey = Annotated[
    str | None, Header(max_length=MOST_KEY, pattern=r"^[!-~]([ -~]*[!-~])?$")
]
"""Printable characters of ASCII, which is what proxies let through."""


class TooMany(OutboxError):
    """Somebody asks more often than the settings allow."""

    code = "TOO_MANY_REQUESTS"
    retryable = True
    remedy = "Ask less often; `[todo] rate_per_second` is the limit."

    def __init__(self, retry_after: int) -> None:
        """Keep after how many seconds the next request may come."""
        super().__init__("You ask too often.")
        self.retry_after = retry_after


def _answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Failure, "description": _MEANINGS[status]} for status in statuses}


def api(
    desk: Desk,
    credentials: Credentials,
    rates: Rates,
    signatures: Mapping[tuple[str, str], Signature],
) -> APIRouter:
    """Return the routes of the API.

    Args:
        desk: the items.
        credentials: recognises people.
        rates: how often each may ask.
        signatures: by workflow and task, the schemes of third parties that show no key.
    """
    bearer = HTTPBearer(auto_error=False, description="An API key, or a JWT.")
    shown = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]

    def counted(person: Person) -> Person:
        wait = rates.wait(person.name)
        if wait:
            raise TooMany(wait)
        return person

    async def recognised(sent: shown) -> Person:
        if sent is None:
            raise Unrecognised
        return counted(await credentials.person(sent.credentials))

    def signed_or_recognised(type_: ItemType, signature: Signature) -> Any:
        async def found(request: Request, sent: shown) -> Person | Message:
            if sent is not None:
                return await recognised(sent)
            body = await body_of(request)
            signature.check(request.headers, body, now=desk.clock.now())
            sender = counted(signature.sender(type_))
            check_json_type(request.headers)
            data = read_object(body)
            id_ = signature.message_id(request.headers, data)
            return Message(sender=sender, id=id_, data=data)

        return found

    routes = APIRouter()
    senders = {
        (one.workflow, one.task): signed_or_recognised(one, signatures[one.workflow, one.task])
        for one in desk.types
        if (one.workflow, one.task) in signatures
    }
    _Types(desk, recognised, senders).add_to(routes)

    @routes.get("/openapi.json", include_in_schema=False)
    async def openapi(
        request: Request, person: Annotated[Person, Depends(recognised)]
    ) -> JSONResponse:
        app: FastAPI = request.app
        others = [one for one in desk.types if not _may_ask(person, one)]
        return JSONResponse(without_types(app.openapi(), others))

    async def nothing(person: Annotated[Person, Depends(recognised)]) -> None:
        raise NoSuchItem

    # What is no type is as what is no item: whoever has no key learns of neither.
    for place in ("/items/{rest:path}", "/answers/{rest:path}"):
        routes.add_api_route(place, nothing, methods=["GET", "POST"], include_in_schema=False)
    return routes


@dataclass(frozen=True, kw_only=True)
class Message:
    """What a third party has signed.

    Args:
        sender: the third party.
        id: that it gives the message, if any.
        data: the answer.
    """

    sender: Person
    id: str | None
    data: Mapping[str, Any]


class _Types:
    """Adds the routes of each type of items."""

    def __init__(self, desk: Desk, recognised: Any, senders: Mapping[tuple[str, str], Any]) -> None:
        self._desk = desk
        self._recognised = recognised
        self._senders = senders
        self._who = Depends(recognised)

    def add_to(self, routes: APIRouter) -> None:
        routes.add_api_route(
            "/items",
            self._list(None),
            methods=["GET"],
            summary="List the open items that you may answer",
            operation_id="list_items",
            response_model=ItemPage,
            responses=_answers(*(one for one in _ASKED if one != 404)),
        )
        for type_ in self._desk.types:
            self._add(routes, type_)

    def _add(self, routes: APIRouter, type_: ItemType) -> None:
        place, name = f"{type_.workflow}/{type_.task}", f"{type_.workflow}_{type_.task}"
        tag: dict[str, Any] = {"tags": [type_.title]}
        body = {
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": contract_reference(type_)}},
            }
        }
        routes.add_api_route(
            f"/items/{place}",
            self._list(type_),
            methods=["GET"],
            summary="List those that are open",
            operation_id=f"list_{name}",
            response_model=ItemPage,
            responses=_answers(*_ASKED),
            **tag,
        )
        routes.add_api_route(
            f"/items/{place}/{{task_id:path}}/answer",
            self._answer(type_),
            methods=["POST"],
            summary="Answer one",
            operation_id=f"answer_{name}",
            response_model=Answered,
            responses=_answers(*_ANSWERED),
            openapi_extra=body,
            **tag,
        )
        for verb, summary in (("take", "Take care of one"), ("release", "Give one back")):
            routes.add_api_route(
                f"/items/{place}/{{task_id:path}}/{verb}",
                self._hold(type_, gives_back=verb == "release"),
                methods=["POST"],
                summary=summary,
                operation_id=f"{verb}_{name}",
                response_model=Held,
                responses=_answers(*_HELD),
                **tag,
            )
        routes.add_api_route(
            f"/items/{place}/{{task_id:path}}",
            self._show(type_),
            methods=["GET"],
            summary="Look at one",
            operation_id=f"show_{name}",
            response_model=Detail,
            responses=_answers(*_ASKED),
            **tag,
        )
        routes.add_api_route(
            f"/answers/{place}",
            self._correlated(type_),
            methods=["POST"],
            summary="Answer the one that the data is about",
            description=_SIGNED if (type_.workflow, type_.task) in self._senders else "",
            operation_id=f"correlate_{name}",
            response_model=Answered,
            responses={**_NOTED, **_answers(*_ANSWERED)},
            openapi_extra=body,
            **tag,
        )

    def _list(self, type_: ItemType | None) -> Any:
        desk = self._desk

        async def listed(
            person: Annotated[Person, self._who],
            role: Annotated[str | None, Query(max_length=100)] = None,
            text: Annotated[str, Query(max_length=200)] = "",
            overdue: bool = False,
            held_by: HeldBy | None = None,
            page: Annotated[int, Query(ge=1, le=100_000)] = 1,
            limit: Annotated[int, Query(ge=1, le=MOST_ON_PAGE)] = PAGE,
        ) -> ItemPage:
            filters = ItemFilters(
                workflow=type_.workflow if type_ else None,
                task=type_.task if type_ else None,
                role=role,
                text=text,
                overdue=overdue,
                held_by=held_by,
            )
            if type_ is not None and not _may_ask(person, type_):
                raise NoSuchItem
            return await desk.items(person, filters, page, limit)

        return listed

    def _show(self, type_: ItemType) -> Any:
        desk = self._desk

        async def shown(task_id: str, person: Annotated[Person, self._who]) -> Mapping[str, Any]:
            of = (type_.workflow, type_.task)
            return (await desk.item(person, task_id, of=of)).document

        return shown

    def _hold(self, type_: ItemType, *, gives_back: bool) -> Any:
        desk = self._desk

        async def held(task_id: str, person: Annotated[Person, self._who]) -> Held:
            of = (type_.workflow, type_.task)
            return await desk.hold(person, task_id, gives_back=gives_back, of=of)

        return held

    def _answer(self, type_: ItemType) -> Any:
        async def answered(
            task_id: str,
            request: Request,
            person: Annotated[Person, self._who],
            idempotency_key: IdempotencyKey = None,
        ) -> Answered | JSONResponse:
            return await self._answered(type_, task_id, request, person, idempotency_key)

        return answered

    def _correlated(self, type_: ItemType) -> Any:
        sender = self._senders.get((type_.workflow, type_.task), self._recognised)

        async def answered(
            request: Request,
            who: Annotated[Person | Message, Depends(sender)],
            idempotency_key: IdempotencyKey = None,
        ) -> Any:
            if isinstance(who, Message):
                return await self._received(type_, who)
            return await self._answered(type_, None, request, who, idempotency_key)

        return answered

    async def _received(self, type_: ItemType, message: Message) -> Any:
        """Answer by a message. Its sender repeats what is no success, so what is on record and does
        not count is told as a success too.
        """
        task_id = await self._desk.correlated(type_, message.data)
        if task_id is None:
            return _noted(None, None)
        try:
            answered = await self._desk.answer(
                message.sender,
                task_id,
                message.data,
                message.id,
                of=(type_.workflow, type_.task),
                is_message=True,
            )
        except AnsweredAlready as error:
            return _noted(task_id, error.outcome)
        except AnsweredTooLate:
            return _noted(task_id, None)
        return answered

    async def _answered(
        self,
        type_: ItemType,
        task_id: str | None,
        request: Request,
        person: Person,
        idempotency_key: str | None,
    ) -> Answered | JSONResponse:
        """Answer an item of a type; where none is named, the one that the data is about."""
        if task_id is None and not _may_ask(person, type_):
            raise NoSuchItem
        data = await object_of(request)
        if task_id is None:
            task_id = await self._desk.correlated(type_, data)
            if task_id is None:
                return _noted(None, None)
        of = (type_.workflow, type_.task)
        return await self._desk.answer(person, task_id, data, idempotency_key, of=of)


def _may_ask(person: Person, type_: ItemType) -> bool:
    """Say whether somebody may know of a type of items; of each item its own version decides."""
    return person.may_answer("", type_.roles, of=(type_.workflow, type_.task))


def _noted(task_id: str | None, outcome: str | None) -> JSONResponse:
    return JSONResponse({"task_id": task_id, "outcome": outcome}, status_code=202)
