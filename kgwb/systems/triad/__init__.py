"""Triad: one model in three roles, generalist, decision-maker and advisor (Zong et al., 2024)."""
