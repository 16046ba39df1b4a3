from django.urls import path

from desk import views

urlpatterns = [path("<customer>/orders", views.orders), path("<customer>/prompt", views.prompt)]
