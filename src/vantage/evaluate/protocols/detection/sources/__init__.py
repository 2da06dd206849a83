"""Annotated images: COCO, PASCAL VOC, and selections of them."""
