"""Formulas and graphs of other libraries -> trees and programs; their libraries are imported at first use."""
