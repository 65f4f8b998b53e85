"""The application: pages over `core`, and the charts they draw."""
