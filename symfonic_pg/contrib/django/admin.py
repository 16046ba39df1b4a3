"""Scopes as a tree, and memories, for who may look; nobody writes here.

Every list is read in the order of an index, a page at a time: it stays quick however much there is. None
asks a question per row.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Q
from django.urls import reverse
from django.utils.html import format_html

from symfonic_pg.contrib.django.lists import (
    BoundedPaginator,
    ChildrenOf,
    LayerFilter,
    MemoriesAt,
    MemoryList,
    ScopeTree,
    indented,
    opened,
)
from symfonic_pg.contrib.django.models import COUNTED, Memory, Scope
from symfonic_pg.contrib.django.searching import matching_ids
from symfonic_pg.memory.scope import MemoryScope


class ReadOnlyAdmin(admin.ModelAdmin):
    """Lists and shows to whoever has the permission `view`; the others are not to be had."""

    actions = None
    paginator = BoundedPaginator
    show_full_result_count = False
    sortable_by = ()
    # What makes Django show the box; what is searched is decided below.
    search_fields = ("pk",)
    # Facets would count everything; Django 4.2 has none.
    show_facets = getattr(getattr(admin, "ShowFacets", None), "NEVER", None)

    def has_add_permission(self, request: Any, *args: Any) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: Any, *args: Any) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: Any, *args: Any) -> bool:
        """Nobody."""
        return False

    def _link(self, model: str, scope: str, text: str) -> str:
        address = reverse(f"admin:symfonic_pg_{model}_changelist", current_app=self.admin_site.name)
        return str(format_html('<a href="{}?{}">{}</a>', address, urlencode({"at": scope}), text))


@admin.register(Scope)
class ScopeAdmin(ReadOnlyAdmin):
    """The scopes, a branch at a time."""

    list_display = ("branch", "memories_here", "created_at")
    list_display_links = None
    list_filter = (ChildrenOf,)
    fields = ("path", "kind", "level_id", "depth", "children", "memories", "created_at")
    search_help_text = "A whole scope (org:acme/user:u1), or how a name in this list begins (user:u, or u)."

    def get_changelist(self, request: Any, **kwargs: Any) -> type[ScopeTree]:
        """The list that shows the open branch."""
        return ScopeTree

    def get_ordering(self, request: Any) -> tuple[str, ...]:
        """As the children of a level are indexed, or the tenants."""
        return ("tenant", "number") if opened(request) is None else ("kind", "level_id", "tenant", "number")

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """A scope by its text form, else those of the list whose name begins so."""
        kind, colon, beginning = search_term.strip().partition(":")
        if "/" in search_term:
            queryset = Scope.objects.filter(path=search_term.strip()).order_by("tenant", "number")
        elif opened(request) is None:
            queryset = queryset.filter(tenant__startswith=search_term.strip())
        elif colon:
            queryset = queryset.filter(kind=kind, level_id__startswith=beginning)
        else:
            queryset = queryset.filter(level_id__startswith=kind)
        return queryset, False

    @admin.display(description="scope")
    def branch(self, scope: Scope) -> str:
        """The level, indented by its depth; one with levels below it opens them."""
        name = str(MemoryScope.of((scope.kind, scope.level_id)))
        is_open = getattr(scope, "is_open", False)
        mark = "▾" if is_open else "▸" if scope.children else "·"
        text = indented(scope.depth, f"{mark} {name}")
        if scope.children or is_open:
            return self._link("scope", scope.path, text)
        # In an element, since white space in front of a plain text may be taken away.
        return str(format_html("<span>{}</span>", text))

    @admin.display(description="memories")
    def memories_here(self, scope: Scope) -> str:
        """How many lie exactly there, as a link to them."""
        count = f"{COUNTED:,}+" if scope.memories > COUNTED else str(scope.memories)
        return self._link("memory", scope.path, count) if scope.memories else "0"


@admin.register(Memory)
class MemoryAdmin(ReadOnlyAdmin):
    """The memories, those of one scope once it is open."""

    list_display = ("record_id", "at", "layer", "kind", "preview", "salience", "uses", "updated_at")
    list_filter = (MemoriesAt, LayerFilter)
    fields = (
        "record_id", "scope", "layer", "kind", "text", "salience", "language", "metadata", "valid_from",
        "valid_until", "expires_at", "created_at", "updated_at", "uses", "last_used_at", "embedded_by",
    )  # fmt: skip
    search_help_text = "In an open scope words or a record's id; else a scope or a key (org:acme/record-1)."

    def get_changelist(self, request: Any, **kwargs: Any) -> type[MemoryList]:
        """The list without the texts."""
        return MemoryList

    def get_ordering(self, request: Any) -> tuple[str, ...]:
        """As the memories of a level are indexed: layer by layer, newest first; else by their key."""
        if opened(request) is None:
            return ("-tenant", "-number")
        return ("tenant", "layer", "-updated_at", "record_id")

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Memories of the open scope by their words or id; without one a memory by key, or a scope's."""
        term, scope = search_term.strip(), opened(request)
        if not term:
            return queryset, False
        if scope is None:
            return queryset.filter(Q(key=term) | Q(scope=term)), False
        found = [*matching_ids(scope, term), term]
        return queryset.filter(tenant=scope.tenant, record_id__in=found), False

    @admin.display(description="scope")
    def at(self, memory: Memory) -> str:
        """The scope, as a link to what lies there."""
        return self._link("memory", memory.scope, memory.scope)
