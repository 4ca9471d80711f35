from .page import render_evaluation as render_evaluation
