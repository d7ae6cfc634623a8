"""Interfaces: files in and out, JSON, tables for people, the command line."""
