"""Cornell: web pages of a university."""

from __future__ import annotations

from hgde.data.sets._webkb import GRAPH_KAN, webkb
from hgde.data.spec import Expected, register

SPEC = register(
    webkb(
        name="cornell",
        title="web pages of a university",
        expected=Expected(183, 277, 1703, 5, 0.123, 1, 183, 1.5, 0.025),
        address=GRAPH_KAN,
        notes="The consistent version. Many papers use cornell_2021snapshot, whose features and labels are Texas's.",
        files=(
            (
                "data/cornell/raw/out1_graph_edges.txt",
                1989,
                "12dc60defc4f8a1f18499e3695bfd62ef0421f9b722297276e7f02dec7ae3dca",
            ),
            (
                "data/cornell/raw/out1_node_feature_label.txt",
                624308,
                "38561ad44e29199a826ccef7f94f469b94a912076f83fbc453a69b8ac2b4b858",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_0.npz",
                704,
                "14022a1e19ec7fc0a07a2c06a785a2f9dc52809dbcd1c14fc318f7800675d73f",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_1.npz",
                700,
                "5568fa27e968a724c92211bf97026a36a08893cf94b218043e49b4c973c35cfb",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_2.npz",
                695,
                "763fc1f423395e4172617fa5b6bc0d7adad2241e5fedd1a4f0a098a67f9dc8e9",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_3.npz",
                701,
                "4334321cd9ec42de9d51107fb9a6dc310512e0921bc1cff0f390301ee37315fa",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_4.npz",
                759,
                "2b6b3ef396f4dc7fcdc276fb16b88bb87409b25879dd672b3a506eca844dd8d7",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_5.npz",
                754,
                "1a40ef8b20aa9e1aa850e1abdaba3efac1f66c98ef2c6a59eadefa21136ece6b",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_6.npz",
                758,
                "bcddf4ab59eae4c7d47b8a6cec9025a54ec0e6d3f3bdcd7678e201f25ace4642",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_7.npz",
                693,
                "2b497e12dfc123d7e7c9bb4fc4a82b5bee18409e109a3e3a04da439cacec964d",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_8.npz",
                701,
                "5c4e110d252d7ad156b2e4cd34b6dbd1cecbcc1755f8d72e932cc2a54f2b643c",
            ),
            (
                "data/cornell/raw/cornell_split_0.6_0.2_9.npz",
                704,
                "80f1531807194d301affbf6f879a4ab4f56a19bdccb62d192e3ecd1b5275f052",
            ),
        ),
    )
)
