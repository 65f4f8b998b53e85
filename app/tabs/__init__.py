"""Tabs: the ways of looking at one finished run, in their order."""

from app.tabs import attention, details, geometry, leakage, maps, predictions

TABS = {
    "Map": maps.draw,
    "Geometry": geometry.draw,
    "Attention": attention.draw,
    "Leakage": leakage.draw,
    "Predictions": predictions.draw,
    "Details": details.draw,
}
