"""Ways to damage files: their bytes, or the elements of their format (JSON trees, words, headers with checksums)."""

import copy
import json
import random
import re
import struct
from typing import Any

_EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
_WORDS = (
    *(
        "",
        "0",
        "-1",
        "1e999",
        "nan",
        "null",
        "true",
        "9" * 30,
        "é\ud7ff",
        "../../x",
        "/etc/passwd",
        "a" * 3000,
        "\0",
        "[]",
    ),
    *("{}", "#", ",", "\n", "=", "(", ")", "'", '"', "<", "&lt;", "%s", "{0}", "\ufeff", "1.5", "0x10", "None", "self"),
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        -(2**70),
        1e308,
        float("inf"),
        float("nan"),
        "",
        "a",
        "../x",
        "9" * 20,
    ),
    *([], {}, [[]], [1, 2], {"a": 1}, [None], "x" * 2000, 10**400),
)


def damage_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flip some bits, overwrite bytes with edge values, cut bytes out, double, move, or truncate."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 64, 512))
        kind = rng.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 2:
            edge = rng.choice(_EDGES)
            width = rng.choice([width for width in (1, 2, 4, 8) if edge < 1 << 8 * width])
            data[at : at + width] = edge.to_bytes(width, rng.choice(("little", "big")))
        elif kind == 3:
            del data[at : at + size]
        elif kind == 4:
            data[at:at] = data[at : at + size]
        elif kind == 5:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other : other + size]
        else:
            del data[at:]
    return bytes(data)


def damage_words(content: bytes, rng: random.Random) -> bytes:
    """Replace, double, swap or drop words and signs of a text; sometimes damage bytes."""
    if rng.random() < 0.2:
        return damage_bytes(content, rng)
    parts = re.findall(r"\w+|\s+|[^\w\s]", content.decode("utf-8", "surrogateescape"))
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, kind = rng.randrange(len(parts) or 1), rng.randrange(4)
        if kind == 0:
            parts[at : at + 1] = [rng.choice(_WORDS)]
        elif kind == 1:
            parts[at:at] = parts[at : at + rng.randrange(1, 8)]
        elif kind == 2:
            del parts[at : at + rng.randrange(1, 8)]
        else:
            parts[at : at + 1] = [rng.choice(parts or [""])]
    return "".join(parts).encode("utf-8", "surrogatepass")


def damage_tree(content: bytes, rng: random.Random) -> bytes:
    """Replace, drop, double or move values of a JSON tree; sometimes damage bytes."""
    if rng.random() < 0.2:
        return damage_bytes(content, rng)
    tree = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        tree = _damage_branch(tree, rng)
    text = json.dumps(tree, default=str)
    return ("[" * 100_000 if rng.random() < 0.01 else text).encode()


def damage_lines(content: bytes, rng: random.Random) -> bytes:
    """Damage a line of JSON as a tree; sometimes damage words."""
    if rng.random() < 0.2:
        return damage_words(content, rng)
    lines = content.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = damage_tree(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def _damage_branch(tree: Any, rng: random.Random) -> Any:
    if not isinstance(tree, list | dict) or not tree or rng.random() < 0.1:
        return copy.deepcopy(rng.choice(_VALUES))  # later damage may change it
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    key, kind = rng.choice(keys), rng.randrange(8)
    if kind == 0:
        del tree[key]
    elif kind == 1:
        tree[key] = json.loads(json.dumps(tree[rng.choice(keys)], default=str))
    elif kind == 2 and isinstance(tree, dict):
        tree[rng.choice(_WORDS)] = tree.pop(key)
    else:
        tree[key] = _damage_branch(tree[key], rng)
    return tree


def damage_tar(content: bytes, rng: random.Random) -> bytes:
    """Overwrite a field of a header and correct its checksum, and move blocks; or damage bytes."""
    if rng.random() < 0.3:
        return damage_bytes(content, rng)
    data = bytearray(content)
    blocks = [at for at in range(0, len(data) - 511, 512) if data[at + 257 : at + 262] == b"ustar"]
    at = rng.choice(blocks)
    field, size = rng.choice(((0, 100), (100, 8), (124, 12), (156, 1), (157, 100), (257, 8), (345, 155)))
    value = rng.choice(
        (*(word.encode("utf-8", "replace") for word in _WORDS), b"\x80" + b"\xff" * 11, b"7" * 12, b"x", b"L", b"g")
    )
    value = value if rng.random() < 0.8 else rng.randbytes(size)
    data[at + field : at + field + size] = value[:size].ljust(size, b"\0")
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    if rng.random() < 0.2:
        other = rng.choice(blocks)
        data[other:other] = data[at : at + 512 * rng.randrange(1, 5)]
    return bytes(data)


def damage_header(content: bytes, rng: random.Random) -> bytes:
    """Damage the JSON header of a safetensors file as a tree, with its length corrected or not; or damage bytes."""
    if rng.random() < 0.3:
        return damage_bytes(content, rng)
    (length,) = struct.unpack_from("<Q", content)
    header = damage_tree(content[8 : 8 + length], rng)
    length_in_header = len(header) if rng.random() < 0.8 else rng.choice(_EDGES)
    return struct.pack("<Q", length_in_header) + header + content[8 + length :]


def damage_array(content: bytes, rng: random.Random) -> bytes:
    """Damage the text before the numbers of an .npy as words, and correct its length; or damage bytes."""
    if rng.random() < 0.3:
        return damage_bytes(content, rng)
    (length,) = struct.unpack_from("<H", content, 8)
    header = damage_words(content[10 : 10 + length], rng)[:60_000]
    return content[:8] + struct.pack("<H", len(header)) + header + content[10 + length :]
