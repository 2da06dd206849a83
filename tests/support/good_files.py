"""Small good files, for tests that damage them."""

import io
import json
import tarfile

from tar_shards import png, samples

VOC = b"""<?xml version="1.0" encoding="UTF-8"?>
<annotation><filename>1.jpg</filename><size><width>40</width><height>40</height></size>
<object><name>dog</name><difficult>0</difficult><bndbox><xmin>1</xmin><ymax>20</ymax></bndbox></object>
<object><name>cat</name><difficult>1</difficult></object></annotation>
"""
SET = b"""branches.0.estimator.temperature=0.1
branches.0.negatives=(OtherImages(), Ring())
encoders.encoder.backbone=ResNet(18, small=True)
learning_rate.base=0.5
data.path='photos'"""


def coco() -> bytes:
    """Three boxes in two images, as COCO describes instances."""
    boxes = [(1, [0, 0, 35, 36.5], 7), (1, [2, 2, 33, 34], 9), (2, [1.5, 0, 38, 39], 7)]
    notes = [
        {"id": n, "image_id": i, "bbox": box, "category_id": c, "iscrowd": 0} for n, (i, box, c) in enumerate(boxes)
    ]
    images = [{"id": number, "file_name": f"{number}.png", "width": 40, "height": 40} for number in (1, 2)]
    return json.dumps(
        {"images": images, "annotations": notes, "categories": [{"id": 7, "name": "dog"}, {"id": 9, "name": "cat"}]}
    ).encode()


def tar() -> bytes:
    """Five samples of a shard, with labels, a long name and a folder."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as shard:
        for name, content in [
            *samples(0, 3, {"json": b'{"label": 1}'}),
            ("é" * 60 + ".png", png(4)),
            ("a/5.png", png(5)),
        ]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))
    return whole.getvalue()
