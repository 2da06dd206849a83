"""Encoders of views: backbones, heads, the extent of BatchNorm, and the roles of networks."""

from vantage.composition.public import make_public
from vantage.encoders.backbone_names import BACKBONES as BACKBONES
from vantage.encoders.backbone_names import backbone_named as backbone_named
from vantage.encoders.backbone_names import with_backbone as with_backbone
from vantage.encoders.backbones.convolutions import Convolutions as Convolutions
from vantage.encoders.backbones.resnet import Backbone as Backbone
from vantage.encoders.backbones.resnet import ResNet as ResNet
from vantage.encoders.backbones.resnet import Timm as Timm
from vantage.encoders.backbones.resnet9 import ResNet9 as ResNet9
from vantage.encoders.backbones.tiny_alexnet import TinyAlexNet as TinyAlexNet
from vantage.encoders.encoder import Encoder as Encoder
from vantage.encoders.encoder import EncoderNetwork as EncoderNetwork
from vantage.encoders.heads import MLP as MLP
from vantage.encoders.heads import Head as Head
from vantage.encoders.heads import JigsawHead as JigsawHead
from vantage.encoders.heads import LinearHead as LinearHead
from vantage.encoders.heads import NormalizedMLP as NormalizedMLP
from vantage.encoders.momentum import Momentum as Momentum
from vantage.encoders.normalization.choices import BatchNorm as BatchNorm
from vantage.encoders.normalization.choices import Normalization as Normalization
from vantage.encoders.normalization.choices import SplitBatchNorm as SplitBatchNorm
from vantage.encoders.roles import PerView as PerView
from vantage.encoders.roles import Role as Role
from vantage.encoders.roles import RoleNetworks as RoleNetworks
from vantage.encoders.roles import Shared as Shared

__all__ = ["BACKBONES", *make_public(globals())]  # pyright: ignore
