"""The read side: what every surface (admin, dashboard, commands, API) asks, asked once. Nothing here changes a row."""
