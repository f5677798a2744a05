"""HGCN's simulated epidemic for node classification."""

from __future__ import annotations

from hgde.data.sets._hgcn import ADDRESS, DISEASE_SPLIT, read_disease
from hgde.data.sets._texts import HGCN
from hgde.data.spec import DatasetSpec, Expected, github_files, register

SPEC = register(
    DatasetSpec(
        name="disease_nc",
        title="simulated epidemic on a tree, HGCN's (node classification)",
        kind="graph",
        tasks=("nodes",),
        protocols="nodes: HGCN's split (in fact 72/4/24 %) published, stratified 30/10/60 % clean; F1 of the infected",
        licence="not stated",
        citation=HGCN,
        read=read_disease,
        files=github_files(
            ADDRESS,
            (
                (
                    "data/disease_nc/disease_nc.edges.csv",
                    7851,
                    "08b2dcf00db1e6a8f491af5294dee98197f1251a63bc9190d05fb4e77507782e",
                ),
                (
                    "data/disease_nc/disease_nc.labels.npy",
                    8480,
                    "70be7f91a854d924f3b7ac423615d75b1f9ee2506261c44113de27cc2caadd51",
                ),
            ),
        ),
        expected=Expected(1044, 1043, 0, 2, 0.875, 1, 1044, 0.0, 0.0, other_features=(1000,)),
        notes="HGCN's 1000 features are not among the files (one-hot node numbers instead); put disease_nc.feats.npz "
        "beside them to use it. The infected nodes form one subtree at the root.",
        split_rule=DISEASE_SPLIT,
        stored_split="ignored",
    )
)
