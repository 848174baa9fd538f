"""The landing page, the admin, and the API where Django REST framework is installed."""

from importlib.util import find_spec

from django.contrib import admin
from django.urls import include, path
from django.views.generic import TemplateView

urlpatterns = [
    path("", TemplateView.as_view(template_name="home.html"), name="home"),
    path("admin/", admin.site.urls),
]
if all(map(find_spec, ("rest_framework", "prometheus_client"))):  # the extra ``rest``
    urlpatterns.append(path("api/", include("resourcepool.rest.urls")))
