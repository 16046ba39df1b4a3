"""The admin's lists: in the order of an index, counted to a bound, and narrowed by scope."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator

from symfonic_pg.contrib.django.models import Memory, Scope
from symfonic_pg.memory.errors import MemoryContractError
from symfonic_pg.memory.scope import MemoryScope

# A list goes no further than this; what lies beyond is reached by a narrower scope or a search.
LISTED = 10_000


class BoundedPaginator(Paginator):
    """Counts to LISTED and has no page after that."""

    @cached_property
    def count(self) -> int:
        """How many there are, at most LISTED."""
        return int(self.object_list.order_by()[:LISTED].count())


class ScopeFilter(admin.SimpleListFilter):
    """The scope that is open, and the way back up to its root."""

    title = "scope"
    parameter_name = "at"

    def has_output(self) -> bool:
        """Always: a list without an open scope is narrowed too."""
        return True

    def lookups(self, request: Any, model_admin: Any) -> Sequence[tuple[str, str]]:
        """The open scope and its ancestors, root first."""
        scope = opened(request)
        if scope is None:
            return ()
        path = [*reversed(scope.ancestors()), scope]
        return [(str(level), indented(level.depth, str(MemoryScope(level.levels[-1:])))) for level in path]

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The part of the list that is shown."""
        if self.value() is None:
            return self.everywhere(queryset)
        scope = opened(request)
        return queryset.none() if scope is None else self.at(queryset, scope)

    def everywhere(self, queryset: Any) -> Any:
        """The list where no scope is open."""
        return queryset

    def at(self, queryset: Any, scope: MemoryScope) -> Any:
        """The list at the open scope."""
        raise NotImplementedError


class MemoriesAt(ScopeFilter):
    """Memories exactly at the open scope."""

    def at(self, queryset: Any, scope: MemoryScope) -> Any:
        """Those that lie there."""
        return queryset.filter(scope=scope)


class ChildrenOf(ScopeFilter):
    """The levels below the open scope, the tenants where none is open."""

    def everywhere(self, queryset: Any) -> Any:
        """The tenants."""
        return queryset.filter(parent_number=None)

    def at(self, queryset: Any, scope: MemoryScope) -> Any:
        """One level down."""
        parent = Scope.objects.filter(path=scope).values("number")
        return queryset.filter(tenant=scope.tenant, parent_number=parent[:1])


class LayerFilter(admin.SimpleListFilter):
    """One layer of the open scope; without a scope there is no index to find it by."""

    title = "layer"
    parameter_name = "layer"

    def lookups(self, request: Any, model_admin: Any) -> Sequence[tuple[str, str]]:
        """The layers, once a scope is open."""
        return [] if opened(request) is None else Memory._meta.get_field("layer").choices

    def queryset(self, request: Any, queryset: Any) -> Any:
        """The layer's memories."""
        return queryset if self.value() is None else queryset.filter(layer=self.value())


class MemoryList(ChangeList):
    """Memories without what the list does not show: a text may be 100,000 characters long."""

    def get_queryset(self, *args: Any, **kwargs: Any) -> Any:
        """The columns of the list."""
        return super().get_queryset(*args, **kwargs).defer("text", "metadata", "last_used_at", "embedded_by")


class ScopeTree(ChangeList):
    """The open branch, from its root down to the open scope, and what lies one level below."""

    result_list: Any

    def get_results(self, request: Any) -> None:
        """One question for the branch, one for the level below."""
        super().get_results(request)
        scope = opened(request)
        if scope is None or self.query or self.page_num > 1:
            return
        path = list(Scope.objects.filter(path__in=[*scope.ancestors(), scope]).order_by("depth"))
        for level in path:
            level.is_open = True
        self.result_list = [*path, *self.result_list]


def opened(request: Any) -> MemoryScope | None:
    """The scope that the address names; None without one or where it is no scope."""
    try:
        return MemoryScope.parse(request.GET["at"])
    except (KeyError, MemoryContractError):
        return None


def indented(depth: int, text: str) -> str:
    """The text, a step further in for each level above it."""
    return "\N{EM SPACE}" * (depth - 1) + text
