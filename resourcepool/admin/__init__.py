"""The admin pages."""

from resourcepool.admin.resource import ProxyAdmin, ResourceAdmin

__all__ = ["ProxyAdmin", "ResourceAdmin"]
