"""The API's description of itself: OpenAPI 3.1, from a table of routes and the models that validate."""

from shared.web.openapi.document import describe

__all__ = ["describe"]
