"""Estimate and calibrate tokens; define tiers, bands, models and prices."""
