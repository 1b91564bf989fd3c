"""Objective functions that go to the processes of pools."""

from __future__ import annotations
