"""Cora: citations between machine learning papers."""

from __future__ import annotations

from hgde.data.sets._planetoid import planetoid
from hgde.data.spec import Expected, register

SPEC = register(
    planetoid(
        name="cora",
        title="citations between machine learning papers",
        expected=Expected(2708, 5278, 1433, 7, 0.810, 78, 2485, 2.5, 0.360),
        in_pgl=False,
        notes="The original adjacency lists repeat 151 edges: 5429 is often printed.",
        files=(
            ("data/ind.cora.x", 22119, "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"),
            ("data/ind.cora.y", 4054, "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"),
            ("data/ind.cora.tx", 148025, "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"),
            ("data/ind.cora.ty", 28135, "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"),
            ("data/ind.cora.allx", 257305, "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"),
            ("data/ind.cora.ally", 47959, "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"),
            ("data/ind.cora.graph", 59847, "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"),
            ("data/ind.cora.test.index", 5000, "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"),
        ),
    )
)
