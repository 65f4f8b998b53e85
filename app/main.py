"""Forgetscope in the browser: what every page shares."""

from pathlib import Path

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

explore = st.Page(Path(__file__).parent / "views" / "explore.py", title="Explore", default=True)
st.navigation([explore], position="hidden").run()
