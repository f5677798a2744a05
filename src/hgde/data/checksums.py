"""Size and SHA-256 of every original file, by repository and data set.

Addresses are pinned to the commit that was read, so the bytes behind them do not move.
"""

from __future__ import annotations

COMMITS: dict[str, str] = {
    "kimiyoung/planetoid": "af6abf468a772cc055bec88c52e4d6f51b7c37e3",
    "HazyResearch/hgcn": "a526385744da25fc880f3da346e17d0fe33817f8",
    "graphdml-uiuc-jlu/geom-gcn": "f1fc0d14b3b019c562737240d06ec83b07d16a8f",
    "WillHua127/GraphKAN-Graph-Kolmogorov-Arnold-Networks": "d3249c06598f8c20806d490ba4847e1cd85fd014",
    "EdisonLeeeee/GraphData": "f8022c26b917346f2a461ffec0ec5ae24b36de68",
}

FILES: dict[str, tuple[str, list[tuple[str, int, str]]]] = {
    "cora": (
        "kimiyoung/planetoid",
        [
            ("data/ind.cora.x", 22119, "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"),
            ("data/ind.cora.y", 4054, "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"),
            ("data/ind.cora.tx", 148025, "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"),
            ("data/ind.cora.ty", 28135, "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"),
            ("data/ind.cora.allx", 257305, "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"),
            ("data/ind.cora.ally", 47959, "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"),
            ("data/ind.cora.graph", 59847, "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"),
            ("data/ind.cora.test.index", 5000, "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"),
        ],
    ),
    "citeseer": (
        "kimiyoung/planetoid",
        [
            ("data/ind.citeseer.x", 31087, "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"),
            ("data/ind.citeseer.y", 3014, "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"),
            ("data/ind.citeseer.tx", 260321, "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"),
            ("data/ind.citeseer.ty", 24135, "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"),
            ("data/ind.citeseer.allx", 595021, "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"),
            ("data/ind.citeseer.ally", 55623, "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"),
            ("data/ind.citeseer.graph", 61987, "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"),
            ("data/ind.citeseer.test.index", 5000, "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"),
        ],
    ),
    "pubmed": (
        "kimiyoung/planetoid",
        [
            ("data/ind.pubmed.x", 23172, "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33"),
            ("data/ind.pubmed.y", 854, "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3"),
            ("data/ind.pubmed.tx", 405505, "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d"),
            ("data/ind.pubmed.ty", 12135, "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd"),
            ("data/ind.pubmed.allx", 7578385, "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e"),
            ("data/ind.pubmed.ally", 224739, "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e"),
            ("data/ind.pubmed.graph", 471808, "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9"),
            ("data/ind.pubmed.test.index", 6000, "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"),
        ],
    ),
    "disease_nc": (
        "HazyResearch/hgcn",
        [
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
        ],
    ),
    "disease_lp": (
        "HazyResearch/hgcn",
        [
            (
                "data/disease_lp/disease_lp.edges.csv",
                22152,
                "b5b7e41bbfd28fc7f61590e5587622103ee9c3aa1b59911c74873a6f328dca07",
            ),
            (
                "data/disease_lp/disease_lp.feats.npz",
                227859,
                "b4a726b13598c036a75e1b49f08e92820553b972966ad950b8d4d5416eb339f8",
            ),
            (
                "data/disease_lp/disease_lp.labels.npy",
                21448,
                "8f2b26602764fbb785b93775d9f71194f1f36920e185af8bc5c31aea07dde858",
            ),
        ],
    ),
    "airport": (
        "HazyResearch/hgcn",
        [
            ("data/airport/airport.p", 554100, "ab16b04cea3666e87dbd8a5bff3de68da61330f4604fa21082f7a17e806e64d8"),
        ],
    ),
    "texas": (
        "graphdml-uiuc-jlu/geom-gcn",
        [
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
        ],
    ),
    "wisconsin": (
        "graphdml-uiuc-jlu/geom-gcn",
        [
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
        ],
    ),
    "cornell_2021snapshot": (
        "graphdml-uiuc-jlu/geom-gcn",
        [
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
        ],
    ),
    "cornell": (
        "WillHua127/GraphKAN-Graph-Kolmogorov-Arnold-Networks",
        [
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
        ],
    ),
    "amazon_photo": (
        "EdisonLeeeee/GraphData",
        [
            ("datasets/amazon_photo.npz", 1772672, "bdb98b54cd3125bfa69b23ba0aae84fabcb770c6727175b8f6eb1d64f3be4b2b"),
        ],
    ),
    "coauthor_cs": (
        "EdisonLeeeee/GraphData",
        [
            ("datasets/coauthor_cs.npz", 2800548, "7b7b51bf270d341f1c4231834c58a526bb04db003fd76a6d2f51ad7d252005ed"),
        ],
    ),
}
