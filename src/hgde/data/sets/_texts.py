"""Sentences that several data sets share."""

LINKS = "links: 85/5/10 % of the undirected edges, as published or clean; ROC AUC"
FEW = "nodes: few labels per class, 1000 validation nodes, the rest for testing, 5 draws; accuracy"
HGCN = "Chami, Ying, Ré, Leskovec: Hyperbolic Graph Convolutional Neural Networks, NeurIPS 2019"
DIFFORMER = "Wu et al.: DIFFormer: Scalable (Graph) Transformers Induced by Energy Constrained Diffusion, ICLR 2023"
SUPPLY = "Distributed through a cloud drive only: save features as x [N, F] and labels as y [N] in an NPZ file."
MADE_HERE = "Apache-2.0 (made by this package)"
