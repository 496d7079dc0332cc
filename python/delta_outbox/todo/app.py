"""The FastAPI application: routers over a desk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException

from delta_outbox.core.settings import TodoSettings
from delta_outbox.core.version import __version__
from delta_outbox.todo.credentials import Credentials
from delta_outbox.todo.desk import Desk
from delta_outbox.todo.failures import failure
from delta_outbox.todo.limits import check_headers
from delta_outbox.todo.openapi import contract_schemas
from delta_outbox.todo.pages.router import Pages
from delta_outbox.todo.patience import limited
from delta_outbox.todo.rates import Rates
from delta_outbox.todo.routes import api
from delta_outbox.todo.signatures import signatures_of

TITLE: Final = "To-Do items"
# Where a process is traced, FastAPI would put addresses into spans, links with their signatures
# among them, and the words of errors into logs; and an exporter that fails would fail requests.
_SILENT: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False}
_HEADERS: Final = {
    "Cache-Control": "no-store",  # so that "back" asks again, and shows the truth
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address of a link is a secret
}


def create_app(desk: Desk, settings: TodoSettings, *, credentials: Credentials) -> FastAPI:
    """Return the application. The API is below `/items` and `/answers`, the pages below `/todo`.

    Args:
        desk: the items.
        settings: `[todo]` of outbox.toml.
        credentials: recognises people: `await credentials.person(token)` returns a `Person` or
            raises `Unrecognised`.

    Raises:
        BadSettings: `[todo.signatures]` names no type of items, or a secret breaks a rule.
    """
    signatures = signatures_of(settings.signatures, desk.types)
    # Pages that show the document would load scripts of others; what is seen needs a key.
    app = FastAPI(
        title=TITLE,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        telemetry=_SILENT,
    )
    _describe(app, desk)

    @app.middleware("http")
    async def with_headers(
        request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        with limited(settings.answer_seconds):
            return await _with_headers(request, call_next)

    app.add_exception_handler(Exception, _failed)
    for status in (404, 405):
        app.add_exception_handler(status, _no_such_place)
    app.add_exception_handler(RequestValidationError, _bad_request)
    rates = Rates(settings.rate_per_second)
    app.include_router(api(desk, credentials, rates, signatures))
    app.include_router(Pages(desk, settings, credentials=credentials, rates=rates).router())

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    return app


async def _with_headers(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    try:
        check_headers(request.headers.raw)
        response = await call_next(request)
    except Exception as error:  # noqa: BLE001 - whatever it is has one answer
        response = await _failed(request, error)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _failed(request: Request, error: Exception) -> Response:
    status, body, headers = failure(error)
    return JSONResponse(body, status_code=status, headers=headers)


async def _no_such_place(request: Request, error: Exception) -> Response:
    """Answer what no route takes."""
    assert isinstance(error, HTTPException)
    told = {
        "code": "NO_SUCH_PLACE" if error.status_code == 404 else "NO_SUCH_METHOD",
        "message": "There is nothing here." if error.status_code == 404 else "Not by this method.",
        "remedy": "See /openapi.json for what there is.",
    }
    return JSONResponse({"error": told}, status_code=error.status_code, headers=error.headers)


async def _bad_request(request: Request, error: Exception) -> Response:
    """Name the parameters that break rules; nothing of what came."""
    assert isinstance(error, RequestValidationError)
    problems = [
        {"pointer": "/" + "/".join(map(str, one["loc"])), "rule": one["type"].replace("_", " ")}
        for one in error.errors()
    ]
    told = {
        "code": "BAD_REQUEST",
        "message": "Parameters of the request break rules.",
        "remedy": "See /openapi.json.",
        "problems": problems,
    }
    return JSONResponse({"error": told}, status_code=422)


def _describe(app: FastAPI, desk: Desk) -> None:
    """Let the OpenAPI document have the contracts."""

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            found = get_openapi(title=app.title, version=app.version, routes=app.routes)
            schemas = found.setdefault("components", {}).setdefault("schemas", {})
            for type_ in desk.types:
                schemas.update(contract_schemas(type_))
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
