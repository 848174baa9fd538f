"""The documentation: its blocks run, its generated parts are right, its site builds."""
