"""Wisconsin: web pages of a university."""

from __future__ import annotations

from hgde.data.sets._webkb import GEOM_GCN, webkb
from hgde.data.spec import Expected, register

SPEC = register(
    webkb(
        name="wisconsin",
        title="web pages of a university",
        expected=Expected(251, 450, 1703, 5, 0.178, 1, 251, 1.0, 0.025),
        address=GEOM_GCN,
        files=(
            (
                "new_data/wisconsin/out1_graph_edges.txt",
                3606,
                "ebd213511c88fce1eda450c2f920600c4b8cbb38f02384856bcc47c6ec1807ae",
            ),
            (
                "new_data/wisconsin/out1_node_feature_label.txt",
                856324,
                "a32b0aa38d42f0d36841e8a8cb646d197f0ff33a182ac75a2b4476aeed3c7e4b",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_0.npz",
                805,
                "f66f641e191d35d491cd3b63d6c2cd93c4b436da398984b44c19a8d4d7e7b1a5",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_1.npz",
                739,
                "534aeb97266bd5a85a8587adf8eebad3f2e001c1240610f24b62c0ad0c2466ee",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_2.npz",
                747,
                "047a5b641778ec3a4c76055fd7f18ecb2424c0952f20dfff7e1b17749d8acbdd",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_3.npz",
                810,
                "706c27b4c51d046c0316f1e915f093e4a1fff48b3436b3e7c421eab596a99e77",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_4.npz",
                812,
                "7ee813605eec086457aaff022cf3837f2f893fcf8bd37e3a8d2ff0c80e4c4f87",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_5.npz",
                749,
                "8094ac2bdaf2cbea8f7a48df66a0800c809b2fd5942740e6b0441b660d3a0dd5",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_6.npz",
                735,
                "c423a8deea9b18f9ecb6cfd703578e2159df167de01fe7e6195b88995010252d",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_7.npz",
                733,
                "57ad808c8d4dd94dc4404124370bbcebb3dcc597c2bea6457bf05f220adf1527",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_8.npz",
                741,
                "27d4d62a2a6aea2cdc399302237512ab0d64fb0c84e648112f97c5896274e42f",
            ),
            (
                "splits/wisconsin_split_0.6_0.2_9.npz",
                744,
                "3c149cd124a19021031609e0d7743a7be59aae4f88c8d38410138e8f06f5daaf",
            ),
        ),
    )
)
