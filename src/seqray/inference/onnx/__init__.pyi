from .export import build_graph as build_graph, export_onnx as export_onnx, require_graph as require_graph
