"""Forgetscope in the browser: what every page shares."""

from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from app.charts.theme import DARK, LIGHT

st.set_page_config(
    page_title="Forgetscope",
    page_icon=":material/visibility_off:",
    layout="wide",
    initial_sidebar_state="auto",
)
st.session_state.theme = DARK if st.context.theme.type == "dark" else LIGHT
st.html(Path(__file__).parent / "style.css")
# Streamlit writes white on every primary colour, also on the dark theme's pale one.
paper = st.session_state.theme.paper
st.html(f'<style>button[kind^="primary"] p {{ color: {paper} !important; }}</style>')

# A picture that nobody sees: the browser fetches what draws pictures while the engine is imported.
with st.container(key="fs-ahead"):
    st.plotly_chart(go.Figure(go.Scatter()), key="ahead")

views = Path(__file__).parent / "views"
explore = st.Page(views / "explore.py", title="Explore", default=True)
compare = st.Page(views / "compare.py", title="Compare")
st.session_state.explore = explore
st.navigation([explore, compare], position="top").run()
