"""Cornell_2021snapshot: Cornell's edges with Texas's features and labels, as many papers used it."""

from __future__ import annotations

from hgde.data.sets._webkb import GEOM_GCN, webkb
from hgde.data.spec import Expected, register

SPEC = register(
    webkb(
        name="cornell_2021snapshot",
        title="Cornell's edges with Texas's features and labels, as many papers used it",
        expected=Expected(183, 277, 1703, 5, 0.296, 1, 183, 1.5, 0.026),
        address=GEOM_GCN,
        notes="Not independent of texas: the feature and label file is the same, byte for byte.",
        files=(
            (
                "new_data/cornell/out1_graph_edges.txt",
                2001,
                "c4522a00cc40873c8a04a3a07c49e24a48a507eb284ac9c9f2d3e0590351bbb7",
            ),
            (
                "new_data/cornell/out1_node_feature_label.txt",
                624308,
                "cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3",
            ),
            (
                "splits/cornell_split_0.6_0.2_0.npz",
                704,
                "14022a1e19ec7fc0a07a2c06a785a2f9dc52809dbcd1c14fc318f7800675d73f",
            ),
            (
                "splits/cornell_split_0.6_0.2_1.npz",
                700,
                "5568fa27e968a724c92211bf97026a36a08893cf94b218043e49b4c973c35cfb",
            ),
            (
                "splits/cornell_split_0.6_0.2_2.npz",
                695,
                "763fc1f423395e4172617fa5b6bc0d7adad2241e5fedd1a4f0a098a67f9dc8e9",
            ),
            (
                "splits/cornell_split_0.6_0.2_3.npz",
                701,
                "4334321cd9ec42de9d51107fb9a6dc310512e0921bc1cff0f390301ee37315fa",
            ),
            (
                "splits/cornell_split_0.6_0.2_4.npz",
                759,
                "2b6b3ef396f4dc7fcdc276fb16b88bb87409b25879dd672b3a506eca844dd8d7",
            ),
            (
                "splits/cornell_split_0.6_0.2_5.npz",
                754,
                "1a40ef8b20aa9e1aa850e1abdaba3efac1f66c98ef2c6a59eadefa21136ece6b",
            ),
            (
                "splits/cornell_split_0.6_0.2_6.npz",
                758,
                "bcddf4ab59eae4c7d47b8a6cec9025a54ec0e6d3f3bdcd7678e201f25ace4642",
            ),
            (
                "splits/cornell_split_0.6_0.2_7.npz",
                693,
                "2b497e12dfc123d7e7c9bb4fc4a82b5bee18409e109a3e3a04da439cacec964d",
            ),
            (
                "splits/cornell_split_0.6_0.2_8.npz",
                701,
                "5c4e110d252d7ad156b2e4cd34b6dbd1cecbcc1755f8d72e932cc2a54f2b643c",
            ),
            (
                "splits/cornell_split_0.6_0.2_9.npz",
                704,
                "80f1531807194d301affbf6f879a4ab4f56a19bdccb62d192e3ecd1b5275f052",
            ),
        ),
    )
)
