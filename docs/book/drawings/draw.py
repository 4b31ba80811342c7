"""Draw the ideas of 00, 02, 03, 04, 05, 09 to 11 as SVG, beside this file: ``python draw.py``.

Positions, lengths, shares and forces are computed; the three clouds are those of two runs, of which
``three_clouds.py`` left the points. Each drawing brings its own white sheet, so that a dark page
shows it as it is.
"""

import csv
import math
import random
from itertools import combinations, pairwise
from pathlib import Path

import pandas as pd

from shrink_utils.study.pages import _value as value

HERE = Path(__file__).parent
TALL = HERE.parent / "_static" / "three_clouds_tall.svg"
NEGATIVE, POSITIVE = "#ee7733", "#004488"  # far apart in hue and in lightness; no arm's colours
BOLD = 'font-weight="bold"'
INK, GREY, PALE, BLUE, RED = "#222222", "#8a8a8a", "#e8eaee", "#1f5fa8", "#b3392f"


def text(x, y, words, size=15, anchor="middle", fill=INK, style=""):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
        f"{style}>{words}</text>"
    )


def percent(share, digits=0):
    return f"{share:.{digits}%}".replace("%", " %")


def line(x1, y1, x2, y2, stroke=INK, width=1.6, end=""):
    marker = f' marker-end="url(#{end})"' if end else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" '
        f'stroke-width="{width}"{marker}/>'
    )


def box(x, y, width, height, fill=PALE, stroke=GREY):
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
        f'fill="{fill}" stroke="{stroke}"/>'
    )


def dot(x, y, fill=INK, radius=5):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"/>'


def sheet(name, width, height, title, parts):
    heads = "".join(
        f'<marker id="{key}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
        for key, colour in (("ink", INK), ("grey", GREY), ("red", RED), ("blue", BLUE))
    )
    drawing = "\n".join(parts)
    return name, (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" role="img">\n'
        f"<title>{title}</title>\n<defs>{heads}</defs>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n{drawing}\n</svg>\n'
    )


def text_to_cloud():
    """00: a text, its word-pieces, the layers, and one vector per text."""
    pieces = ["[CLS]", "it", "play", "##s", "well"]
    parts = [text(85, 40, "a text"), text(85, 148, "“It plays well”", 16, fill=BLUE)]
    parts += [
        line(160, 143, 196, 143, GREY, 2, "grey"),
        text(385, 40, "word-pieces, through the layers"),
    ]
    for k, piece in enumerate(pieces):
        x = 205 + 74 * k
        first = k == 0
        parts += [box(x, 225, 66, 30, "#ffffff"), text(x + 33, 245, piece, 14)]
        for level in range(3):
            fill = "#cfe0f3" if first else PALE
            parts.append(box(x, 170 - 50 * level, 66, 26, fill, BLUE if first else GREY))
            for other in range(5) if level else [k]:
                below = 225 if level == 0 else 170 - 50 * (level - 1)
                strong = first or level == 0
                parts.append(
                    line(238 + 74 * other, below, x + 33, 197 - 50 * level,
                         "#7d9cc0" if strong else "#d5d8dd", 1.1 if strong else 0.7)
                )  # fmt: skip
    parts += [text(385, 278, "every layer mixes each piece with all others", 13, fill=GREY)]
    parts += [line(238, 68, 238, 56, BLUE, 2), line(238, 56, 600, 56, BLUE, 2)]
    parts += [line(600, 56, 600, 140, BLUE, 2), line(600, 140, 716, 140, BLUE, 2, "blue")]
    parts += [
        text(612, 88, "the vector", 13, "start", BLUE),
        text(612, 106, "of [CLS]", 13, "start", BLUE),
    ]
    generator = random.Random(3)
    for _ in range(45):
        x, y = generator.gauss(800, 34), generator.gauss(150, 34)
        parts.append(dot(max(x, 740), y, GREY, 4))
    parts += [dot(725, 140, BLUE, 7), text(790, 40, "the cloud")]
    parts += [text(790, 278, "one point per text", 13, fill=GREY)]
    return sheet("text_to_cloud", 900, 295, "From a text to a point of the cloud", parts)


WORDS = {  # 02: (word, sentence): its vector
    ("my", 1): (3, 0),
    ("bank", 1): (0, 4),
    ("my", 2): (4, -3),
    ("bank", 2): (4, 3),
    ("my", 3): (4, 0),
    ("bank", 3): (0, 3),
}
WORD_INK = {"my": BLUE, "bank": RED}


def cosine(u, v):
    return (u[0] * v[0] + u[1] * v[1]) / math.hypot(*u) / math.hypot(*v)


def arrows(x, y, scale, names, label="{} {}"):
    """Vectors of `names` from an origin at (x, y), told at their tips; and two axes."""
    parts = [line(x - 12, y, x + 4.6 * scale, y, "#d5d8dd", 1)]
    parts += [line(x, y + 3.2 * scale, x, y - 4.6 * scale, "#d5d8dd", 1)]
    for word, sentence in sorted(names, key=lambda name: -math.hypot(*WORDS[name])):
        u, v = WORDS[word, sentence]
        ink, end = WORD_INK[word], "blue" if word == "my" else "red"
        parts.append(line(x, y, x + scale * u, y - scale * v, ink, 2.6, end))
        if label:
            short = (u, v) == (3, 0)  # below its line: a longer one goes on in the same direction
            at = x + scale * u + (0 if short else 8), y - scale * v + (22 if short else 5)
            told = label.format(word, sentence, u, v).replace("-", "−")
            parts.append(text(*at, told, 15, "middle" if short else "start", ink))
    return parts


def cosine_table(x, y, names, marked, side=44):
    """Cosines of all pairs of `names`; those that `marked` says, of two names, are grey."""
    parts = []
    for i, (a, of_a) in enumerate(WORDS[name] for name in names):
        word, sentence = names[i]
        label = f"{word} {sentence}"
        parts += [text(x - 8, y + side * (i + 0.62), label, 15, "end", WORD_INK[word])]
        parts += [text(x + side * (i + 0.5), y - 10, label, 13, fill=WORD_INK[word])]
        for j, other in enumerate(names):
            shaded = marked(names[i], other)
            cell = x + side * j, y + side * i
            parts.append(box(*cell, side, side, "#dcdfe4" if shaded else "#ffffff", "#b9bdc4"))
            told = (
                f"{cosine((a, of_a), WORDS[other]):.2f}".replace("0.", ".").rstrip("0").rstrip(".")
            )
            middle = cell[0] + side / 2, cell[1] + 0.62 * side
            parts.append(
                text(*middle, told.replace("-", "−") or "0", 15, fill=INK if shaded else GREY)
            )
    return parts


def six_words():
    """02: six occurrences in the plane, and the cosines of which AvgSim is the mean."""
    names = list(WORDS)
    parts = [text(140, 30, "six words"), *arrows(45, 215, 40, names, "{} {}: ({}, {})")]
    parts += [text(530, 30, "their cosines; grey: different sentences")]
    parts += cosine_table(395, 70, names, lambda a, b: a[1] != b[1])
    return sheet("six_words", 720, 350, "Six words in the plane and their cosines", parts)


def self_sim():
    """02: the three occurrences of each word, and their cosines."""
    parts = []
    for k, word in enumerate(WORD_INK):
        names = [name for name in WORDS if name[0] == word]
        x, y = 35 + 390 * k, 165
        parts += arrows(x, y, 27, names)
        parts += cosine_table(x + 225, 95, names, lambda a, b: a != b, 48)
    return sheet("self_sim", 800, 285, "Each word with itself in other sentences", parts)


def intra_sim():
    """02: the words of each sentence with their mean, and the cosines with it."""
    parts = []
    for k in (1, 2, 3):
        x, y, scale = 240 * k - 205, 200, 32
        names = [name for name in WORDS if name[1] == k]
        mean = [sum(WORDS[name][axis] for name in names) / 2 for axis in (0, 1)]
        found = [cosine(mean, WORDS[name]) for name in names]
        parts += [text(x + 80, 30, f"sentence {k}"), *arrows(x, y, scale, names)]
        parts.append(line(x, y, x + scale * mean[0], y - scale * mean[1], INK, 4, "ink"))
        parts.append(text(x + scale * mean[0] + 8, y - scale * mean[1] - 6, "mean", 15, "start"))
        sum_ = " + ".join(f"{value:.1f}".lstrip("0") for value in found)
        parts.append(text(x + 80, 325, f"({sum_}) / 2", 15))
    return sheet("intra_sim", 720, 345, "The words of each sentence and their mean", parts)


def mev():
    """02: the direction that explains most of each word, and of all six."""
    parts = []
    panels = {"my": (3, -1), "bank": (1, 2), "all six": (1, 0)}
    for k, (title, direction) in enumerate(panels.items()):
        x, y, scale = 35 + 240 * k, 200, 32
        names = [name for name in WORDS if title in (name[0], "all six")]
        length = math.hypot(*direction)
        dx, dy = direction[0] / length, direction[1] / length
        parts += [text(x + 80, 30, title), *arrows(x, y, scale, names, label="")]
        reach = 5.2 if k != 1 else 4.8
        ends = x - 10 * dx, y + 10 * dy, x + reach * scale * dx, y - reach * scale * dy
        parts.append(line(*ends, INK, 1.6))
        for u, v in (WORDS[name] for name in names):
            t = u * dx + v * dy
            foot = x + scale * t * dx, y - scale * t * dy
            parts += [line(x + scale * u, y - scale * v, *foot, GREY, 1.2), dot(*foot, INK, 4)]
        along = sum((u * dx + v * dy) ** 2 for u, v in (WORDS[name] for name in names))
        share = along / sum(u * u + v * v for u, v in (WORDS[name] for name in names))
        parts.append(text(x + 80, 330, f"share {share:.2f}"))
    return sheet("mev", 720, 345, "The direction that explains most of a word's vectors", parts)


CORNERS = {"a": (0, 0), "b": (1, 0), "c": (1, 2), "d": (4, 2)}


def boundary_matrix():
    """04: four points, the boundary matrix of their six edges, and the three bars.

    The columns that keep a lowest entry need no reduction here.
    """
    ends = {e: math.dist(CORNERS[e[0]], CORNERS[e[1]]) for e in combinations("abcd", 2)}
    edges = sorted(ends, key=ends.get)
    reduced = {}  # lowest entry: the column that has it, and its edge
    for edge in edges:
        column = set(edge)
        while column and max(column) in reduced:
            column ^= reduced[max(column)][0]
        if column:
            reduced[max(column)] = column, edge
    deadly = {edge for _, edge in reduced.values()}

    def place(name):
        x, y = CORNERS[name]
        return 45 + 48 * x, 205 - 48 * y

    parts = [text(140, 36, "simplices: points, edges")]
    for edge in edges:
        colour, width = (BLUE, 3) if edge in deadly else ("#c4c7cc", 1.4)
        parts.append(line(*place(edge[0]), *place(edge[1]), colour, width))
    for name in CORNERS:
        x, y = place(name)
        parts += [dot(x, y, INK, 6), text(x, y + 26 if CORNERS[name][1] == 0 else y - 14, name, 16)]
    parts += [line(262, 150, 300, 150, GREY, 2, "grey"), text(465, 36, "boundary matrix, mod 2")]
    for k, edge in enumerate(edges):
        x = 350 + 46 * k
        parts.append(text(x, 76, "".join(edge), 15, fill=BLUE if edge in deadly else GREY))
        for row, name in enumerate("abcd"):
            lowest = edge in deadly and reduced.get(name, ("", ""))[1] == edge
            if lowest:
                parts.append(box(x - 15, 88 + 38 * row, 30, 30, "#cfe0f3", BLUE))
            entry = "1" if name in edge else "·"
            parts.append(text(x, 109 + 38 * row, entry, 16, fill=INK if entry == "1" else GREY))
    for row, name in enumerate("abcd"):
        parts.append(text(318, 109 + 38 * row, name, 15))
    parts += [text(465, 254, "blue: columns that keep their lowest 1", 13, fill=GREY)]
    parts += [text(465, 273, "ac + bc = ab,  ab + ab = 0: ac becomes empty", 13, fill=GREY)]
    parts += [line(622, 150, 660, 150, GREY, 2, "grey"), text(780, 36, "bars")]
    for row, (name, (_, edge)) in enumerate(sorted(reduced.items())):
        y = 105 + 38 * row
        parts += [line(690, y, 690 + 55 * ends[edge], y, BLUE, 8), text(676, y + 5, name, 15)]
        parts.append(text(700 + 55 * ends[edge], y + 5, f"{ends[edge]:g}", 14, "start"))
    parts += [text(780, 262, "b, c and d die; a lives on", 13, fill=GREY)]
    return sheet(
        "boundary_matrix", 900, 282, "From simplices to the boundary matrix to bars", parts
    )


CLOUD = [(18, 22), (52, 12), (30, 60), (74, 40), (150, 88)]


def tree(points):
    """Edges of the minimum spanning tree: Kruskal's algorithm."""
    group = list(range(len(points)))
    found = []
    for i, j in sorted(combinations(group, 2), key=lambda e: math.dist(points[e[0]], points[e[1]])):
        if group[i] != group[j]:
            found.append((i, j))
            old, new = group[j], group[i]
            group = [new if g == old else g for g in group]
    return found


def cloud_to_weights():
    """05: cloud, tree, shares, entropy, the arrows of a step, weights."""
    edges = tree(CLOUD)
    lengths = [math.dist(CLOUD[i], CLOUD[j]) for i, j in edges]
    shares = [length / sum(lengths) for length in lengths]
    entropy = -sum(p * math.log(p) for p in shares)
    colours = [GREY, GREY, GREY, RED]

    def panel(left, k, title):
        return [text(left + 85, 36, f"{k}. {title}")]

    def at(left, point):
        return left + point[0], 75 + 1.15 * point[1]

    parts = panel(5, 1, "cloud") + panel(190, 2, "tree: bars") + panel(375, 3, "shares, entropy")
    parts += panel(560, 4, "step") + panel(735, 5, "encoder")
    for left in (180, 365, 555, 738):
        parts.append(line(left - 8, 130, left + 14, 130, GREY, 2, "grey"))
    for edge, colour in zip(edges, colours, strict=True):
        parts.append(line(*at(196, CLOUD[edge[0]]), *at(196, CLOUD[edge[1]]), colour, 3))
        parts.append(line(*at(570, CLOUD[edge[0]]), *at(570, CLOUD[edge[1]]), "#d5d8dd", 1.4))
    for k, (share, colour) in enumerate(zip(shares, colours, strict=True)):
        parts.append(line(392, 82 + 26 * k, 392 + 190 * share, 82 + 26 * k, colour, 12))
        parts.append(text(400 + 190 * share, 87 + 26 * k, f"{share:.1%}", 13, "start"))
    parts.append(text(460, 205, f"E = {entropy:.2f} of ln 4 = {math.log(4):.2f}", 14))
    forces = [[0.0, 0.0] for _ in CLOUD]
    for (i, j), length, share in zip(edges, lengths, shares, strict=True):
        pull = (math.log(share) + entropy) / sum(lengths)  # together where positive
        for a, b in ((i, j), (j, i)):
            for axis in (0, 1):
                forces[a][axis] += pull * (CLOUD[b][axis] - CLOUD[a][axis]) / length
    scale = 44 / max(math.hypot(*force) for force in forces)
    for point, force in zip(CLOUD, forces, strict=True):
        x, y = at(570, point)
        parts.append(
            line(x, y, x + scale * force[0], y + 1.15 * scale * force[1], BLUE, 2.4, "blue")
        )
    for left in (16, 196, 570):
        parts += [dot(*at(left, point)) for point in CLOUD]
    for row in range(4):
        for column in range(5):
            parts.append(box(765 + 22 * column, 82 + 22 * row, 22, 22, stroke="#b9bdc4"))
    below = {
        90: "one point per text",
        275: "the longest in red",
        460: "even bars: largest E",
        645: "long bars close, short open",
        820: "its weights move",
    }
    parts += [text(x, 236, words, 13, fill=GREY) for x, words in below.items()]
    parts.append(text(820, 196, "W − η ∂loss/∂W", 15))
    return sheet("cloud_to_weights", 910, 255, "From a cloud to the gradient of its weights", parts)


# The five points of 03: in y they are turned by a right angle, then pushed along one axis.
FIVE = {
    "x": [(-3, -3), (3, -2), (3, 1), (-4, 2), (1, 2)],
    "y": [(3, -1), (2, 1), (-1, 1), (-2, -5), (-2, 4)],
}
LINKS = list(combinations(range(5), 2))  # the ten pairs of points


def square(x, y, fill=BLUE, side=10):
    return (
        f'<rect x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side}" height="{side}" '
        f'fill="{fill}"/>'
    )


def axes_at(middle, centre, reach=5, unit=19):
    """A cross of two axes, and where a point of the plane lies on the sheet."""

    def at(u, v):
        return middle + unit * u, centre - unit * v

    cross = [line(*at(-reach, 0), *at(reach, 0), "#c4c7cc", 1.2)]
    return [*cross, line(*at(0, -reach), *at(0, reach), "#c4c7cc", 1.2)], at


def five_points(space, at, away=15):
    """The points of one space with their letters, outwards: dots in x, squares in y."""
    parts = []
    for name, (u, v) in zip("abcde", FIVE[space], strict=True):
        x, y = at(u, v)
        far = math.hypot(u, v)
        parts.append(dot(x, y, INK) if space == "x" else square(x, y))
        parts.append(text(x + away * u / far, y - away * v / far + 5, name, 16))
    return parts


def two_spaces():
    """03: the same five words in two spaces."""
    parts = []
    for space, middle in (("x", 190), ("y", 530)):
        cross, at = axes_at(middle, 155)
        parts += [text(middle, 30, f"five words in {space}", 16), *cross, *five_points(space, at)]
    return sheet("two_spaces", 720, 275, "Five words in two spaces", parts)


def ranks_of_angles(points):
    """Of the ten pairs: 1 for the smallest angle at the origin, 10 for the largest."""
    angles = []
    for i, j in LINKS:
        (a, b), (c, d) = points[i], points[j]
        angles.append(math.acos((a * c + b * d) / math.hypot(a, b) / math.hypot(c, d)))
    return [1 + sorted(angles).index(angle) for angle in angles]


def rsa_ranks():
    """03: rays from the origin in two spaces, and the ranks of the ten angles between them."""
    parts = []
    for space, middle in (("x", 125), ("y", 355)):
        cross, at = axes_at(middle, 160, unit=17)
        rays = [line(*at(0, 0), *at(*point), GREY, 1.6) for point in FIVE[space]]
        parts += [text(middle, 30, f"angles in {space}", 16), *cross, *rays]
        parts += five_points(space, at)
    ranks = [ranks_of_angles(points) for points in FIVE.values()]

    def at(first, second):
        return 535 + 23 * first, 270 - 21 * second

    parts += [text(660, 30, "ranks of the ten pairs", 16), line(*at(1, 1), *at(10, 10), GREY, 1.6)]
    for (i, j), first, second in zip(LINKS, *ranks, strict=True):
        x, y = at(first, second)
        parts.append(line(x, y, *at(first, first), RED, 1.6))
        parts.append(dot(x, y, INK, 4))
        parts.append(text(x, y + 17 if second < first else y - 8, "abcde"[i] + "abcde"[j], 14))
    parts += [line(*at(0, 0), *at(10.5, 0), "#c4c7cc"), line(*at(0, 0), *at(0, 10.5), "#c4c7cc")]
    parts += [text(655, 288, "rank in x", 14), text(528, 165, "rank in y", 14, "end")]
    apart = sum((a - b) ** 2 for a, b in zip(*ranks, strict=True))
    parts.append(
        text(240, 288, f"red: differences of ranks; their squares add up to {apart}", 14, fill=RED)
    )
    return sheet("rsa_ranks", 820, 302, "RSA compares the ranks of ten angles", parts)


def products(left, right):
    """The 2 × 2 products of the columns of two spaces."""
    return [
        [sum(p[i] * q[j] for p, q in zip(FIVE[left], FIVE[right], strict=True)) for j in (0, 1)]
        for i in (0, 1)
    ]


def cka_products():
    """03: three small matrices, and the sums of their squares."""
    parts = []
    for k, (left, right, name) in enumerate(
        (("x", "y", "XᵀY"), ("x", "x", "XᵀX"), ("y", "y", "YᵀY"))
    ):
        x, entries = 80 + 225 * k, products(left, right)
        parts.append(text(x + 60, 34, name, 17))
        for i, row in enumerate(entries):
            for j, entry in enumerate(row):
                fill = "#cfe0f3" if entry else "#ffffff"
                parts.append(box(x + 60 * j, 48 + 50 * i, 60, 50, fill))
                parts.append(text(x + 30 + 60 * j, 79 + 50 * i, f"{entry}".replace("-", "−"), 17))
        sides = sorted((abs(e) for row in entries for e in row if e), reverse=True)
        total = sum(side**2 for side in sides)
        parts.append(text(x + 60, 178, f"{sides[0]}² + {sides[1]}² = {total}", 16, fill=BLUE))
    return sheet("cka_products", 720, 200, "CKA is made of the squares of these products", parts)


def cca_pairs():
    """03: the two pairs of columns that go together."""
    parts = []
    pairs = (
        ("second column of x", 1, "−1 × first column of y", 0, -1, {"d": "d, e", "e": ""}),
        ("first column of x", 0, "second column of y", 1, 1, {"b": "b, c", "c": ""}),
    )
    for k, (across, i, up, j, sign, together) in enumerate(pairs):
        middle = 190 + 360 * k
        cross, at = axes_at(middle, 155)
        parts += [*cross, line(*at(-5, -5), *at(5, 5), "#c4c7cc", 1.6)]
        parts.append(text(middle, 46, up, 14))
        for name, p, q in zip("abcde", FIVE["x"], FIVE["y"], strict=True):
            x, y = at(p[i], sign * q[j])
            parts += [dot(x, y, BLUE), text(x + 10, y + 5, together.get(name, name), 16, "start")]
        parts.append(text(middle + 100, 174, across, 14))
    return sheet("cca_pairs", 740, 265, "CCA pairs the columns that go together", parts)


def procrustes_turn():
    """03: x, and x turned and shrunk, beside y."""
    cross, at = axes_at(190, 155)
    parts = [text(190, 30, "x", 16), *cross, *five_points("x", at)]
    parts += [
        line(315, 150, 385, 150, GREY, 2, "grey"),
        text(350, 138, "turn,", 14),
        text(350, 172, "× 5/6", 14),
    ]
    cross, at = axes_at(530, 155)
    parts += [text(530, 30, "turned x (dots) on y (squares)", 16), *cross]
    for (u, v), point in zip(FIVE["x"], FIVE["y"], strict=True):
        moved = at(-5 / 6 * v, 5 / 6 * u)
        parts += [line(*moved, *at(*point), RED, 2.2), dot(*moved)]
    parts += five_points("y", at)
    parts.append(text(545, 262, "red: what is left over", 14, "start", RED))
    return sheet("procrustes_turn", 720, 285, "Procrustes turns one cloud onto the other", parts)


def points_of_clouds():
    """By cloud: the share of variance along direction 1, and (label, x, y) of each sentence."""
    clouds = {}
    with (HERE / "three_clouds.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cloud = clouds.setdefault(row["cloud"], (float(row["share_1"]), []))
            cloud[1].append((int(row["label"]), float(row["x"]), float(row["y"])))
    return clouds


def markers(points, at):
    """Circles and triangles, dealt out in turns so that no class hides the other."""
    parts = []
    for first in range(0, len(points), 50):
        some = [(label, *at(x, y)) for label, x, y in points[first : first + 50]]
        round_ones = "".join(f"M{x:.0f} {y:.0f}h0" for label, x, y in some if label == 0)
        pointed = "".join(f"M{x:.0f} {y - 4:.0f}l4 7h-8z" for label, x, y in some if label == 1)
        parts += [
            f'<path d="{round_ones}" stroke="{NEGATIVE}" stroke-width="7" stroke-linecap="round" '
            'stroke-opacity=".85"/>',
            f'<path d="{pointed}" fill="{POSITIVE}" fill-opacity=".75"/>',
        ]
    return parts


def cloud_panel(left, top, title, share, points):
    """A cloud, and the part of its variance that direction 1 has, as a bar and as a number."""
    scale, middle, width = 14.5, left + 195, 330
    low, high = ([extreme(point[k] for point in points) for k in (1, 2)] for extreme in (min, max))

    def at(x, y):
        across, up = x - (low[0] + high[0]) / 2, y - (low[1] + high[1]) / 2
        return middle + scale * across, top + 112 - scale * up

    return [
        text(middle, top + 25, title, 24, style=BOLD),
        *markers(points, at),
        box(middle - width / 2, top + 195, width, 20),
        box(middle - width / 2, top + 195, width * share, 20, INK, INK),
        text(middle, top + 264, percent(share), 50, style=BOLD),
        text(middle, top + 291, "of the variance on one axis (PC1)", 17),
    ]


TITLES = {
    "before": "before training",
    "none": "plain fine-tuning",
    "prominent": "with the regularizer",
}
LEGEND = ("negative review", "positive review")


def legend(left, y):
    """The two classes, by colour and marker."""
    samples = markers([(0, 0, 0), (1, 1, 0)], lambda x, _: (left + 190 * x, y - 6))
    words = [text(left + 14 + 190 * k, y, name, 18, "start") for k, name in enumerate(LEGEND)]
    return [*samples, *words]


def three_clouds():
    """README and 00: held-out sentences before and after training, side by side."""
    parts = legend(425, 336)
    for k, (name, cloud) in enumerate(points_of_clouds().items()):
        parts += cloud_panel(5 + 395 * k, 8, TITLES[name], *cloud)
    title = "Plain fine-tuning stretches PC1; the regularizer holds it back"
    return sheet("three_clouds", 1200, 355, title, parts)


def three_clouds_tall():
    """The same for phones: one below the other."""
    parts = legend(35, 32)
    for k, (name, cloud) in enumerate(points_of_clouds().items()):
        parts += cloud_panel(5, 60 + 320 * k, TITLES[name], *cloud)
    title = "Plain fine-tuning stretches PC1; the regularizer holds it back"
    return sheet("three_clouds_tall", 400, 1020, title, parts)


START, STEP = (2, 1), (0.2, -0.6)  # 10: a step on the loss (product of both - 1) squared


def slopes_along(share):
    """Of each parameter, its step times its slope, where `share` of the step is made."""
    one, two = (place + share * step for place, step in zip(START, STEP, strict=True))
    slope = 2 * (one * two - 1)
    return STEP[0] * slope * two, STEP[1] * slope * one


def curve(points, stroke, width=2.2, fill="none", dash=""):
    told = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    look = f'fill="{fill}" stroke="{stroke}" stroke-width="{width}"{dashes}'
    return f'<polyline points="{told}" {look}/>'


def allocation_rules():
    """10: the slope of each parameter on its way, and what two rules take for the area below."""
    parts = []
    for k, name in enumerate(("θ₁ hurts", "θ₂ helps")):
        left = 90 + 360 * k

        def at(share, height, left=left):
            return left + 230 * share, 100 - 62 * height

        way = [(s / 20, slopes_along(s / 20)[k]) for s in range(21)]
        area = sum(a + b for (_, a), (_, b) in pairwise(way)) / 40
        below = [at(0, 0), *(at(*point) for point in way), at(1, 0)]
        first, last = way[0], way[-1]
        parts += [text(left + 115, 32, f"{name}: area {area:+.2f}".replace("-", "−"), 16)]
        parts += [curve(below, "none", 0, "#cfe0f3"), line(*at(0, 0), *at(1.04, 0), GREY, 1.2)]
        parts += [curve([at(*first), at(1, first[1])], RED, 2.2, dash="7 5")]
        parts += [curve([at(*first), at(*last)], INK, 1.8, dash="2 4")]
        parts += [curve([at(*point) for point in way], BLUE, 2.6)]
        parts += [dot(*at(*first), INK), dot(*at(*last), INK)]
        for share, height in (first, last):
            x, y = at(share, height)
            told = f"{height:+.2f}".replace("-", "−")
            beside, anchor = (10, "start") if share else (-10, "end")
            parts.append(text(x + beside, y + 5, told, 14, anchor))
        parts += [text(left, 292, "start of the step", 13, fill=GREY)]
        parts += [text(left + 230, 292, "end", 13, fill=GREY)]
    parts += [line(120, 322, 150, 322, BLUE, 2.6), text(158, 327, "step × slope", 14, "start")]
    parts += [curve([(290, 322), (320, 322)], RED, 2.2, dash="7 5")]
    parts += [text(328, 327, "Euler: the start", 14, "start")]
    parts += [curve([(480, 322), (510, 322)], INK, 1.8, dash="2 4")]
    parts += [text(518, 327, "trapezoid: both ends", 14, "start")]
    title = "Each part of a loss change is the area under a curve; two rules estimate it"
    return sheet("allocation_rules", 760, 345, title, parts)


VERDICTS = {  # 11: ends of an interval in hundredths, and the verdict on each of two claims
    "claimed: less than 0": [
        ((-9, -2), "supported"),
        ((1, 3), "contradicted"),
        ((-3, 2), "equivalent"),
        ((-7, 2), "open"),
    ],
    "claimed: no worse than − margin": [
        ((-3, 1), "supported"),
        ((-9, -5), "contradicted"),
        ((-7, 2), "open"),
    ],
}
MARKS = {  # sides and turn of a mark, 0 sides for a circle, and its colour: those of 11's figure
    "supported": (0, 0, INK),
    "contradicted": (3, 90, "#905020"),
    "equivalent": (4, 0, "#999933"),
    "open": (4, 45, "#808080"),
}


def mark(x, y, sides, turn, fill):
    if not sides:
        return dot(x, y, fill, 6)
    angles = [math.radians(turn + 360 * k / sides) for k in range(sides)]
    corners = " ".join(f"{x + 8 * math.cos(a):.1f},{y + 8 * math.sin(a):.1f}" for a in angles)
    return f'<polygon points="{corners}" fill="{fill}"/>'


def interval_to_verdict():
    """11: intervals beside 0 and the margin, and the verdicts on them."""
    parts = []
    for k, (claim, rows) in enumerate(VERDICTS.items()):
        middle = 165 + 380 * k
        bound = middle - 48 * k  # 4 hundredths, 12 each
        parts += [text(middle + 25, 30, claim, 16), box(middle - 48, 48, 96, 172, stroke="none")]
        parts += [line(bound, 48, bound, 220, INK, 2.2)]
        if k:
            parts.append(line(middle, 48, middle, 220, GREY, 1))
        for row, ((low, high), verdict) in enumerate(rows):
            y, ink = 72 + 40 * row, MARKS[verdict][-1]
            ends = middle + 12 * low, middle + 12 * high
            parts += [line(ends[0], y, ends[1], y, ink, 3), mark(sum(ends) / 2, y, *MARKS[verdict])]
            told = verdict + " (by p)" * (verdict == "supported")
            parts.append(text(middle + 62, y + 5, told, 15, "start"))
        for place, told in ((-48, "− margin"), (0, "0"), (48, "+ margin")):
            parts.append(text(middle + place, 240, told, 13, fill=GREY))
    title = "How an interval beside 0 and a margin becomes a verdict"
    return sheet("interval_to_verdict", 760, 256, title, parts)


def tower(x, names, inks, cut):
    """Two halves of a model, the lower one first; what it reads and says; and where it is cut."""
    parts = [line(x, 268, x, 252, GREY, 2, "grey"), line(x, 76, x, 60, GREY, 2, "grey")]
    for y, name, ink in zip((180, 80), names, inks, strict=True):
        fill = {BLUE: "#cfe0f3", RED: "#f3d6d3"}.get(ink, "#ffffff")
        parts += [box(x - 70, y, 140, 68, fill, ink), text(x, y + 40, name, 16, fill=ink)]
    if cut:
        parts += [curve([(x - 95, 164), (x + 95, 164)], INK, 2, dash="6 5")]
        parts.append(text(x + 102, 169, cut, 14, "start"))
    return parts


def stitch():
    """09: two models that are cut, and the stitched one."""
    parts = []
    for k, (name, inks) in enumerate((("f", (BLUE, GREY)), ("g", (GREY, RED)))):
        x = 125 + 275 * k
        halves = f"{name}: lower layers", f"{name}: upper layers"
        parts += [*tower(x, halves, inks, f"layer {'lm'[k]}"), text(x, 26, f"model {name}", 17)]
    parts += [line(575, 164, 625, 164, GREY, 2, "grey"), text(735, 26, "stitched", 17)]
    parts += tower(735, ("f: lower layers", "g: upper layers"), (BLUE, RED), "")
    parts += [box(705, 150, 60, 28, "#ffffff", INK), text(735, 170, "map φ", 15)]
    for x in (125, 400, 735):
        parts += [text(x, 286, "text", 14), text(x, 54, "prediction", 14)]
    parts.append(text(775, 169, "states of f → states of g", 13, "start", GREY))
    title = "A stitch: one model's lower layers below another's upper layers"
    return sheet("stitch", 960, 300, title, parts)


STATES = {"a": (2, 1), "b": (1, 2), "c": (-1, -2), "d": (-2, -1)}  # 09: b and d want 1


def stitch_turned():
    """09: four states beside the border between two answers, in g and turned in f."""
    parts = []
    for k, title in enumerate(("states of g", "states of f: the same, turned")):
        middle = 190 + 380 * k
        cross, at = axes_at(middle, 165, reach=2.9, unit=38)
        parts += [text(middle, 30, title, 16), *cross, line(*at(-2.7, -2.7), *at(2.7, 2.7), INK, 2)]
        parts += [text(middle - 110, 66, "g answers 1", 14, fill=BLUE)]
        parts += [text(middle + 120, 274, "g answers 0", 14, fill=RED)]
        for name, (u, v) in STATES.items():
            x, y = at(-v, u) if k else at(u, v)
            one = name in "bd"
            parts.append(square(x, y, BLUE, 12) if one else dot(x, y, RED, 6.5))
            parts.append(text(x + 12, y + 5, name, 16, "start"))
    parts += [dot(130, 306, RED, 6.5), text(144, 311, "right answer: 0", 14, "start")]
    parts += [square(310, 306, BLUE, 12), text(324, 311, "right answer: 1", 14, "start")]
    parts += [line(490, 306, 520, 306, INK, 2), text(528, 311, "where g is undecided", 14, "start")]
    return sheet("stitch_turned", 760, 328, "Turned states on the wrong side of a border", parts)


def planted_rule():
    """09b: what the training pairs of two groups are, and which labels overlap explains."""
    entailed, others = (
        ("entailed, words overlap", "#cfe0f3", BLUE),
        ("not entailed, other words", PALE),
    )
    counter = ("not entailed, words overlap", "#f3d6d3", RED)
    groups = {
        "heuristic": [(0.5, *entailed), (0.5, *others, INK)],
        "generalizing": [(0.5, *entailed), (0.25, *others, INK), (0.25, *counter)],
    }
    parts = [text(480, 26, "the training pairs of each group", 16)]
    for k, (name, shares) in enumerate(groups.items()):
        left, y = 130, 46 + 76 * k
        parts.append(text(left - 12, y + 33, name, 16, "end"))
        for share, told, fill, ink in shares:
            width = 820 * share
            parts += [box(left, y, width, 56, fill, ink), text(left + width / 2, y + 33, told, 14)]
            left += width
    parts.append(text(847, 200, "counter-examples", 14, fill=RED))
    return sheet("planted_rule", 970, 216, "Counter-examples replace a quarter of the pairs", parts)


EVALUATIONS = HERE.parents[2] / "data" / "reference" / "heldout" / "evaluations.parquet"
CONDITIONS = {  # colours and dashes of the study's figures
    ("none", 1.0): ("no regularizer", "#000000", ""),
    ("all", 4.0): ("all bars, weight 4", "#009E73", "10 4"),
    ("all", 8.0): ("all bars, weight 8", "#009E73", "3 4"),
    ("prominent", 1.0): ("selected bars, weight 1", "#0072B2", "16 3"),
    ("isoscore", 0.3): ("IsoScore★, weight 0.3", "#332288", "22 3 3 3"),
}


def share_by_epoch():
    """07b and the page of evidence: variance explained by PC1, a line per condition."""
    states = pd.read_parquet(EVALUATIONS).query("task == 'sentiment_products'")
    states = states.astype({"arm": str, "weight": float}).round({"weight": 6})
    means = states.groupby(["arm", "weight", "epoch"]).centred_1.mean()

    def at(epoch, share):
        return 90 + 55 * epoch, 390 - 380 * share

    parts = [text(365, 445, "epoch", 17), text(90, 24, "variance explained by PC1", 17, "start")]
    parts.append(text(at(10, 0)[0] + 12, 24, "at epoch 10:", 16, "start"))
    for share in (0.2, 0.4, 0.6, 0.8):
        x, y = at(0, share)
        parts += [line(x, y, x + 550, y, PALE), text(x - 10, y + 5, f"{share:.0%}", 15, "end")]
    parts += [text(at(epoch, 0)[0], 415, str(epoch), 15) for epoch in range(0, 11, 2)]
    ends = {key: means[key][10.0] for key in CONDITIONS}
    beside = 0.0
    for key in sorted(ends, key=ends.get):  # from below, so that no name hides another
        name, colour, dashes = CONDITIONS[key]
        places = [at(epoch, share) for epoch, share in means[key].items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        look = f'fill="none" stroke="{colour}" stroke-width="3" stroke-dasharray="{dashes}"'
        beside = max(beside + 0.055, ends[key])
        x, y = at(10, beside)
        label = f"{name}: {ends[key]:.0%}".replace("%", " %")
        parts += [
            f'<polyline points="{path}" {look}/>',
            text(x + 12, y + 5, label, 16, "start", colour),
        ]
    title = "Variance explained by PC1, held-out product reviews, by epoch: means of eight seeds"
    return sheet("share_by_epoch", 900, 460, title, parts)


FOUND = {  # README and 11: what its numbers are called in docs/numbers.toml, its label and colour
    "before": ("before fine-tuning", "#666666"),
    "plain": ("plain fine-tuning", "#000000"),
    "selected": ("selected bars, weight 1", "#0072B2"),
    "all4": ("all bars, weight 4", "#009E73"),
    "isoscore": ("IsoScore★, weight 0.3", "#332288"),
}


def what_was_found():
    """By condition: PC1's share, accuracy minus plain, and the verses that search finds."""
    heads = {385: "variance on one direction (PC1)", 705: "accuracy", 1030: "search: verses found"}
    parts = [text(x, 28, head, 18, style=BOLD) for x, head in heads.items()]
    top, apart = 68, 50
    below = top + 5 * apart - 20

    def gained(points):
        return 660 + 90 * points

    def found(share):
        return 890 + 460 * (share - 0.4)

    ticks = [(gained(points), words) for points, words in ((0, "as plain"), (1, "+1 point"))]
    ticks += [(found(share), percent(share)) for share in (0.4, 0.6, 0.8, 1)]
    for x, words in ticks:
        parts += [line(x, top - 22, x, below, PALE, 1.6), text(x, below + 20, words, 15)]
    for k, (name, (label, colour)) in enumerate(FOUND.items()):
        y, share = top + apart * k, value(f"ten.share.{name}")[0]
        parts += [
            text(222, y + 6, label, 18, "end", colour),
            box(240, y - 13, 290, 26),
            box(240, y - 13, 290 * share, 26, colour, colour),
            text(540, y + 7, percent(share), 19, "start", style=BOLD),
        ]
        if name not in ("before", "plain"):
            mean, low, high = (100 * x for x in value(f"late.accuracy.found.{name}")[:3])
            parts.append(line(gained(low), y, gained(high), y, colour, 3))
            parts.append(dot(gained(mean), y, colour, 6))
        trained, whitened = (value(f"full.found.{kind}{name}")[0] for kind in ("", "whitened."))
        parts.append(line(found(trained), y, found(whitened), y, colour, 1))
        parts.append(dot(found(trained), y, colour, 7))
        parts.append(ring(found(whitened), y, colour))
        number = percent(trained)
        parts.append(text(found(trained) - 14, y + 6, number, 16, "end"))
    accuracy = percent(value("ten.accuracy.plain")[0], 1)
    parts += [text(gained(0) + 8, top + apart + 6, accuracy, 16, "start")]
    y = below + 54
    parts += [
        text(705, y, "dot: mean, line: 95 %", 15),
        dot(900, y - 5, INK, 7),
        text(914, y, "as trained", 15, "start"),
        ring(1030, y - 5, INK),
        text(1044, y, "whitened afterwards", 15, "start"),
    ]
    title = "Bars make embeddings more isotropic; accuracy stays; whitening helps search more"
    return sheet("what_was_found", 1220, y + 16, title, parts)


def ring(x, y, stroke, radius=7):
    look = f'fill="#ffffff" stroke="{stroke}" stroke-width="3"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {look}/>'


def drawings():
    """Each drawing by name."""
    words = (six_words, self_sim, intra_sim, mev)
    of_03 = (two_spaces, rsa_ranks, cka_products, cca_pairs, procrustes_turn)
    every = (text_to_cloud, *words, *of_03, boundary_matrix, cloud_to_weights, three_clouds)
    last = stitch, stitch_turned, planted_rule, allocation_rules, interval_to_verdict
    last = (*last, share_by_epoch, what_was_found)
    return dict(draw() for draw in (*every, *last))


if __name__ == "__main__":
    for name, drawing in drawings().items():
        (HERE / f"{name}.svg").write_text(drawing, encoding="utf-8")
    TALL.write_text(three_clouds_tall()[1], encoding="utf-8")
