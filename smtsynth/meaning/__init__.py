"""Meaning of programs and schedules (model, section 5): rules, device classes, words of cuts, buffers."""
