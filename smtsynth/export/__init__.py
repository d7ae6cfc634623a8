"""Exporters: a placement or a program, written for the framework or launcher that will use it. One target a module."""
