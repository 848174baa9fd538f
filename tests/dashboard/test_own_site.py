"""The dashboard on a custom admin site."""

from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import path

from resourcepool.admin import DashboardAdmin, ProxyAdmin
from resourcepool.history.models import Dashboard
from resourcepool.models import Proxy
from tests.app.rows import new

site = AdminSite(name="ops")
site.register(Dashboard, DashboardAdmin)
site.register(Proxy, ProxyAdmin)
urlpatterns = [path("ops/", site.urls)]


@override_settings(ROOT_URLCONF=__name__)
def test_every_link_belongs_to_that_site() -> None:
    proxy, client = new(Proxy), Client()
    client.force_login(User.objects.create_superuser("operator"))
    text = client.get("/ops/resourcepool/dashboard/").content.decode()
    for address in ("dashboard/live/", "proxy/", f"proxy/{proxy.pk}/change/"):
        assert f'"/ops/resourcepool/{address}' in text
    assert "/admin/" not in text.replace("/static/admin/", "").replace("static/admin/", "")
    assert client.get("/ops/resourcepool/dashboard/live/").status_code == 200
