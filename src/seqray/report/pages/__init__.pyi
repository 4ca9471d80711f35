from .audit_page import render_audit as render_audit
from .summary_page import render_summary as render_summary
