"""The report: one HTML file that explains a fit and opens anywhere, without a network."""

from mnpca.report.comparison import write_comparison
from mnpca.report.content import collect, write_report
from mnpca.report.render import load_content, render, save_content, write_text

__all__ = [
    "collect",
    "load_content",
    "render",
    "save_content",
    "write_comparison",
    "write_report",
    "write_text",
]
