"""Requests for pages: who makes them, the forms that they send, and the pages that they get."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from delta_outbox.core.clock import Clock
from delta_outbox.core.settings import TodoSettings
from delta_outbox.todo.credentials import Credentials, Unrecognised
from delta_outbox.todo.limits import TooLarge, TooSlow, body_of
from delta_outbox.todo.pages.form import PREFIX, Texts
from delta_outbox.todo.pages.rendering import Templates
from delta_outbox.todo.pages.sessions import COOKIE, LIFE, Session, Sessions
from delta_outbox.todo.pages.wording import HOME, Note
from delta_outbox.todo.people import Person
from delta_outbox.workflow_engine.item_links import LEAST_SECRET, Links
from delta_outbox.workflow_engine.item_links import PATH as LINK_PATH

MOST_FIELDS: Final = 1000  # of a form
SIGN_IN: Final = "/todo/sign-in"
IPV6_NETWORK: Final = 64  # bits
_WITH_PORT: Final = re.compile(r"\[(.*)\](?::\d+)?|([\d.]+):\d+", re.ASCII)  # as proxies write it

# Beside those that all answers of the server have (app.py).
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A request, and who makes it."""

    request: Request
    session: Session
    person: Person | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """Return what the address asks for."""
        return self.request.query_params

    @property
    def address(self) -> str:
        """Return the address, from the slash behind the host on."""
        return f"{self.request.url.path}?{self.request.url.query}".rstrip("?")

    @property
    def is_link(self) -> bool:
        """Say whether a link has led here."""
        return self.request.url.path == LINK_PATH


class NotSent(Exception):
    """A form is not taken: it was not made for this session, or is none."""


class Visits:
    """Recognises who makes requests, and answers them.

    Args:
        settings: `[todo]`. Without `link_secret` everybody signs in anew when the server was
            started again, and nobody has a link.
        credentials: recognise people by their API keys.
        clock: the time.

    Raises:
        BadSettings: `link_secret` is too short.
    """

    def __init__(self, settings: TodoSettings, *, credentials: Credentials, clock: Clock) -> None:
        secret = settings.link_secret or secrets.token_urlsafe(LEAST_SECRET)
        self.sessions = Sessions(secret)
        self.links = Links(secret)
        self._credentials = credentials
        self._is_secure = bool(settings.tls_certificate) or settings.behind_proxy
        self._clock = clock
        self._templates = Templates()

    def visit(self, request: Request) -> Visit:
        """Return a visit by somebody who is not known.

        Args:
            request: that is made.
        """
        return Visit(request=request, session=self.sessions.begin(self._clock.now()))

    async def recognised(self, visit: Visit) -> Visit:
        """Return a visit with its session, if there is one, and whoever has signed in with it.

        Args:
            visit: by somebody who is not known.

        Raises:
            NotInTime: nobody can say now which keys count.
        """
        text = visit.request.cookies.get(COOKIE, "")
        session = self.sessions.read(text, self._clock.now())
        if session is None:
            return visit
        if not session.key:
            return replace(visit, session=session)
        try:
            person = await self._credentials.holder(session.key)
        except Unrecognised:
            return visit
        return replace(visit, session=session, person=person)

    async def sent(self, visit: Visit) -> Texts:
        """Return the fields of a form that was made for this session.

        Args:
            visit: that has brought it.

        Raises:
            NotSent: it was not.
        """
        kind = visit.request.headers.get("content-type", "").partition(";")[0].strip()
        try:
            body = await body_of(visit.request)
            sent = parse_qs(
                body.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MOST_FIELDS,
            )
        except (TooLarge, TooSlow, ValueError):
            raise NotSent from None
        token = sent.get("token", [""])[0]
        is_form = kind == "application/x-www-form-urlencoded"
        if not is_form or not self.sessions.is_token(token, visit.session):
            raise NotSent
        return {
            name: texts
            for name, texts in sent.items()
            if name in ("key", "next", "answer") or name.startswith(PREFIX)
        }

    def page(
        self,
        visit: Visit | None,
        template: str,
        *,
        status: int = 200,
        keeps: bool = True,
        **shown: Any,
    ) -> Response:
        """Return a page.

        Args:
            visit: that is answered; None: by whom must not be asked now.
            template: its name.
            status: of HTTP.
            keeps: a browser without a session gets the one of the page.
            shown: what the template shows.
        """
        token = "" if visit is None else self.sessions.token(visit.session)
        # Who has a link is nobody here, also in a browser that somebody has signed in with.
        person = None if visit is None or visit.is_link else visit.person
        text = self._templates.render(template, token=token, person=person, **shown)
        response = Response(text, status, dict(HEADERS), "text/html; charset=utf-8")
        if status == 503:
            response.headers["Retry-After"] = "2"
        if visit is not None and keeps:
            self._keep(visit, response, visit.session)
        return response

    def to(self, visit: Visit, address: str, session: Session | None = None) -> Response:
        """Lead to another page.

        Args:
            visit: that is answered.
            address: of the page.
            session: that the browser is to keep from now on; None: the one that it has.
        """
        response = RedirectResponse(address, 303, dict(HEADERS))
        if session is not None:
            self._keep(visit, response, session)
        return response

    def to_sign_in(self, visit: Visit) -> Response:
        """Lead to the sign-in, and from there back to the page of a visit."""
        return self.to(visit, f"{SIGN_IN}?{urlencode({'next': visit.address})}")

    def _keep(self, visit: Visit, response: Response, session: Session) -> None:
        text = self.sessions.text(session)
        if text != visit.request.cookies.get(COOKIE):
            response.set_cookie(
                COOKIE,
                text,
                max_age=int(LIFE.total_seconds()),
                path=HOME,
                secure=self._is_secure,
                httponly=True,
                samesite="strict",
            )

    def note(self, visit: Visit | None, status: int, note: Note) -> Response:
        """Return a page that says one thing.

        Args:
            visit: that is answered; None: by whom must not be asked now.
            status: of HTTP.
            note: what it says.
        """
        # A session that could not be read now, or was not sent from elsewhere, stays as it is.
        return self.page(visit, "note.html", status=status, keeps=False, note=note)


def network_of(request: Request, *, behind_proxy: bool) -> str:
    """Return the address that a request comes from; of IPv6 the network, where one person has many.

    Args:
        request: that is made.
        behind_proxy: the address is the last one that `X-Forwarded-For` names, which the proxy has
            added, if it names any.
    """
    # A proxy adds a line of its own or goes on in the last one; those before may be anybody's.
    forwarded = request.headers.getlist("x-forwarded-for")[-1:] if behind_proxy else []
    peer = request.client.host if request.client is not None else ""
    text = "".join(forwarded).rpartition(",")[2].strip() or peer
    with_port = _WITH_PORT.fullmatch(text)
    text = (with_port[1] or with_port[2]) if with_port else text
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    # One of IPv4 that a socket of both kinds shows.
    address = getattr(address, "ipv4_mapped", None) or address
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address.packed, IPV6_NETWORK), strict=False))


def comes_from_elsewhere(request: Request) -> bool:
    """Say whether another site has led here. The browser keeps the cookie back then, so a page
    that leads to itself comes first: else who is signed in would be asked for the key again.
    """
    is_from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
    return is_from_elsewhere and request.method == "GET" and COOKIE not in request.cookies
