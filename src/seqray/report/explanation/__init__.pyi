from .alignment_page import AlignmentReport as AlignmentReport, render_alignments as render_alignments
from .data import ReportData as ReportData
from .page import render_report as render_report
