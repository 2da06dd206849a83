"""Encoders of views: backbones, heads, the extent of BatchNorm, and the roles of networks."""

from vantage.encoders.backbones import Backbone, ResNet, Timm
from vantage.encoders.convolutions import Convolutions
from vantage.encoders.encoder import Encoder, EncoderNetwork
from vantage.encoders.heads import MLP, Head, JigsawHead, LinearHead, NormalizedMLP
from vantage.encoders.named import BACKBONES, backbone_named, with_backbone
from vantage.encoders.normalization import BatchNorm, Normalization, SplitBatchNorm
from vantage.encoders.resnet9 import ResNet9
from vantage.encoders.roles import Momentum, PerView, Role, RoleNetworks, Shared
from vantage.encoders.tiny_alexnet import TinyAlexNet

__all__ = [
    "BACKBONES",
    "MLP",
    "Backbone",
    "BatchNorm",
    "Convolutions",
    "Encoder",
    "EncoderNetwork",
    "Head",
    "JigsawHead",
    "LinearHead",
    "Momentum",
    "Normalization",
    "NormalizedMLP",
    "PerView",
    "ResNet",
    "ResNet9",
    "Role",
    "RoleNetworks",
    "Shared",
    "SplitBatchNorm",
    "Timm",
    "TinyAlexNet",
    "backbone_named",
    "with_backbone",
]
