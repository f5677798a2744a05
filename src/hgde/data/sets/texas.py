"""Texas: web pages of a university."""

from __future__ import annotations

from hgde.data.sets._webkb import GEOM_GCN, webkb
from hgde.data.spec import Expected, register

SPEC = register(
    webkb(
        name="texas",
        title="web pages of a university",
        expected=Expected(183, 279, 1703, 5, 0.061, 1, 183, 1.0, 0.030),
        address=GEOM_GCN,
        notes="One class has a single node.",
        files=(
            (
                "new_data/texas/out1_graph_edges.txt",
                2172,
                "0fe85183243a78cbee9b85a684f8240963d04d1020d10e9cd2b8cfb25e33b476",
            ),
            (
                "new_data/texas/out1_node_feature_label.txt",
                624308,
                "cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3",
            ),
            (
                "splits/texas_split_0.6_0.2_0.npz",
                698,
                "7ba77bf7a8856fcc0ab15623a611b8cdce994e820f577da914123fb4f45272b0",
            ),
            (
                "splits/texas_split_0.6_0.2_1.npz",
                701,
                "21cc244a96e3c51ad7993afb4dd227f90e467d82b964bb42d7d9fc500a6ef87f",
            ),
            (
                "splits/texas_split_0.6_0.2_2.npz",
                756,
                "b9e96a699ccf3a4c31ffbd03e52b25570889833425d20fa44e06c37b327cf61e",
            ),
            (
                "splits/texas_split_0.6_0.2_3.npz",
                759,
                "1a7deeb1285009789d5e6045d7e39f7d019c9223d9a75a2b7ce5e26d33b51f63",
            ),
            (
                "splits/texas_split_0.6_0.2_4.npz",
                702,
                "b5419ff3fe31adcae66fdb085d4f47d0b188e9436ab59f438632af969aafc674",
            ),
            (
                "splits/texas_split_0.6_0.2_5.npz",
                691,
                "68405fd1b9ff6105d99717220ecbd198785e338bf4a73abee722bbc9703d2667",
            ),
            (
                "splits/texas_split_0.6_0.2_6.npz",
                756,
                "8ad78b973164e70e5ac0d282e79adcbc6006e373909fbdfd72a13131e09040b8",
            ),
            (
                "splits/texas_split_0.6_0.2_7.npz",
                693,
                "a84bcbf997365bddf5fdf72ed49dc7e435e475f8c6210f8cdee7c8581a2bd6df",
            ),
            (
                "splits/texas_split_0.6_0.2_8.npz",
                762,
                "65ba65f296f91d40d2d7d3c9369b67415094a7e254c6eee48cd6d6531c586fdf",
            ),
            (
                "splits/texas_split_0.6_0.2_9.npz",
                693,
                "4306981d654ad8835c000c1f73fb6c1e60dfe99e26c13a6073f3b0f4cc3ce6ee",
            ),
        ),
    )
)
