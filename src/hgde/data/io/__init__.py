"""Reading data: text tables, Parquet, NPZ, GraphML, and objects that hold a graph."""
