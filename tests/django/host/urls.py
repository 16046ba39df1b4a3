"""The host's addresses."""

from django.contrib import admin
from django.urls import path

from tests.django.host import views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("recall", views.recall),
    path("recall-async", views.recall_async),
    path("order", views.order),
]
