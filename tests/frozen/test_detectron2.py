"""An export for Detectron2: every name and shape as its networks have them, equal outputs, settings that agree."""

import importlib.util
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from references.detectron2_network import Detector, Network, match_names
from test_export import encoder
from tiny import saved_run, tiny_run

from vantage.encoders.backbones.resnet import ResNet, Timm
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.encoders.roles import Shared
from vantage.errors import UserError
from vantage.frozen.export.backbone import export, export_backbone
from vantage.frozen.export.detectron2 import detectors, name_there, weights_there
from vantage.frozen.export.detectron2.folder import yaml_lines
from vantage.views.colors.spaces import Lab
from vantage.views.colors.statistics import IMAGENET

yaml = pytest.importorskip("yaml")

TABLE = Path(__file__).parents[1] / "references" / "detectron2_r50.txt"
NORM = ("weight", "bias", "running_mean", "running_var")
CHOICES = [ResNet(18), ResNet(34), ResNet(50), ResNet(101)]
CHOICES += [ResNet(101, groups=32, width_per_group=8)]
CHOICES += [ResNet(152, groups=32, width_per_group=8), ResNet(50, width_per_group=128)]
CHOICES += [ResNet(50, width_multiplier=2.0)]


def shapes(choice: ResNet) -> dict[str, torch.Tensor]:
    """Shapes of a network's saved tensors by Detectron2's names, without memory for numbers."""
    with torch.device("meta"):
        tensors = choice.build().state_dict()
    return {new_name: tensor for name, tensor in tensors.items() if (new_name := name_there(name)) is not None}


def settle(backbone: torch.nn.Module, images: torch.Tensor) -> None:
    """Sets BatchNorm's statistics to those of some images, so that the outputs of a fresh network are not all 0."""
    norms = [module for module in backbone.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    backbone.train()
    with torch.no_grad():
        backbone(images)
    backbone.eval()


@pytest.mark.parametrize("choice", CHOICES, ids=repr)
def test_names_and_shapes_are_those_of_detectron2(choice: ResNet) -> None:
    shapes_by_name = shapes(choice)
    settings_by_name = detectors(choice, IMAGENET, "weights.pth", "c4.pth")
    architectures = {
        repr({**settings["MODEL"]["RESNETS"], "NORM": ""}): name for name, settings in settings_by_name.items()
    }
    assert len(architectures) == 2  # what follows holds of every other file
    for name in architectures.values():
        with torch.device("meta"):
            model = Detector(settings_by_name[name]["MODEL"])
        model_names, loadable = set(model.state_dict()), shapes_by_name
        if "-c4-" in name and choice.depth < 50:  # the head there is of another kind, so nothing may be put into it
            loadable = {key: value for key, value in shapes_by_name.items() if not key.startswith("res5.")}
            model_names = {key for key in model_names if not key.startswith("roi_heads")}
        loaded_names, left_over = match_names(model, loadable)
        assert set(loaded_names) == model_names and not left_over, name


def test_the_file_of_a_resnet50_has_the_names_that_detectron2_writes_down(tmp_path: Path) -> None:
    """By a table, so that nothing of ours says what the names should be: 53 convolutions, 265 tensors."""
    result = export_backbone(encoder(ResNet(50)), "detectron2", tmp_path / "out")
    actual = {name: tuple(one.shape) for name, one in torch.load(result.file, weights_only=True)["model"].items()}
    expected: dict[str, tuple[int, ...]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, out, channels, side = line.split()
            expected[f"{name}.weight"] = (int(out), int(channels), int(side), int(side))
            expected |= {f"{name}.norm.{each}": (int(out),) for each in NORM}
    assert len(expected) == 265 and actual == expected


def test_a_head_of_other_blocks_would_be_filled_only_partly() -> None:
    """Why depth 18 needs a file without its last stage for C4 detectors."""
    settings = detectors(ResNet(18), IMAGENET, "a", "b")["voc-faster-rcnn-c4-24k-frozen"]
    shapes_by_name = shapes(ResNet(18))
    with torch.device("meta"):
        loaded_names, left_over = match_names(Detector(settings["MODEL"]), shapes_by_name)
    head = [name for name in loaded_names if name.startswith("roi_heads.res5")]
    assert "roi_heads.res5.0.conv2.weight" in head and "res5.0.conv1.weight" in left_over


@pytest.mark.parametrize(
    "choice",
    [ResNet(18), pytest.param(ResNet(50, groups=32, width_per_group=4), marks=pytest.mark.slow)],
    ids=repr,
)
def test_outputs_equal_those_of_detectron2(choice: ResNet, tmp_path: Path) -> None:
    """On pixels of 0 to 255 in the order of the settings, with their mean and deviation."""
    frozen_encoder = encoder(choice)
    pixels = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    settle(frozen_encoder.backbone, frozen_encoder.view.finish(pixels))
    result = export_backbone(frozen_encoder, "detectron2", tmp_path / "out")
    content = torch.load(result.file, weights_only=True)
    assert content["matching_heuristics"] is True
    settings = yaml.safe_load((tmp_path / "out" / "coco-mask-rcnn-fpn-1x.yaml").read_text())
    model = Network(settings["MODEL"]["RESNETS"], 4)
    model.load_state_dict(content["model"], strict=True)
    backbone = frozen_encoder.backbone.double()  # the networks amplify what float32 rounds
    model.double()
    values = (settings["MODEL"][f"PIXEL_{name}"] for name in ("MEAN", "STD"))
    mean, deviation = (torch.tensor(value, dtype=torch.float64)[:, None, None] for value in values)
    assert settings["INPUT"]["FORMAT"] == "RGB"
    with torch.no_grad():
        normalized_pixels = (pixels.double() - mean) / deviation
        torch.testing.assert_close(normalized_pixels.float(), frozen_encoder.view.finish(pixels))
        ours = backbone(normalized_pixels)
        torch.testing.assert_close(model(normalized_pixels).mean((2, 3)), ours, rtol=1e-9, atol=1e-9)
        swapped_features = model((pixels.flip(1).double() - mean) / deviation).mean((2, 3))
    assert (swapped_features - ours).abs().max() > 1e-2 < ours.abs().max()
    if choice.depth >= 50:
        other = Network({**settings["MODEL"]["RESNETS"], "STRIDE_IN_1X1": True}, 4)
        other.load_state_dict(content["model"], strict=True)
        with torch.no_grad():
            assert (other.double()(normalized_pixels).mean((2, 3)) - ours).abs().max() > 1e-2


def test_settings_are_the_papers() -> None:
    settings_by_name = detectors(ResNet(50), IMAGENET, "weights.pth", "weights.pth")
    for settings in settings_by_name.values():
        model = settings["MODEL"]
        assert settings["INPUT"]["FORMAT"] == "RGB"
        assert model["PIXEL_MEAN"] == [123.675, 116.28, 103.53] and model["PIXEL_STD"] == [58.395, 57.12, 57.375]
        assert model["RESNETS"]["STRIDE_IN_1X1"] is False and settings["SOLVER"]["BASE_LR"] == 0.02
    voc = settings_by_name["voc-faster-rcnn-c4-24k"]
    assert voc["MODEL"]["ROI_HEADS"] == {"NAME": "Res5ROIHeadsExtraNorm", "NUM_CLASSES": 20}
    assert voc["SOLVER"] == {
        "IMS_PER_BATCH": 16, "BASE_LR": 0.02, "STEPS": [18000, 22000], "MAX_ITER": 24000, "WARMUP_ITERS": 100
    }  # fmt: skip
    assert voc["INPUT"]["MIN_SIZE_TRAIN"] == [480, 512, 544, 576, 608, 640, 672, 704, 736, 768, 800]
    assert voc["MODEL"]["BACKBONE"]["FREEZE_AT"] == 0 and voc["TEST"]["PRECISE_BN"]["ENABLED"] is True
    lengths = {name: settings_by_name[f"coco-mask-rcnn-fpn-{name}"]["SOLVER"] for name in ("1x", "2x", "6x")}
    assert [lengths[name]["MAX_ITER"] for name in lengths] == [90_000, 180_000, 540_000]
    assert [lengths[name]["STEPS"] for name in lengths] == [[60_000, 80_000], [120_000, 160_000], [480_000, 520_000]]
    pyramid = settings_by_name["coco-mask-rcnn-fpn-1x"]["MODEL"]
    assert {pyramid[part]["NORM"] for part in ("RESNETS", "FPN", "ROI_BOX_HEAD", "ROI_MASK_HEAD")} == {"SyncBN"}
    assert settings_by_name["coco-cascade-mask-rcnn-fpn-1x"]["MODEL"]["ROI_HEADS"]["NAME"] == "CascadeROIHeads"
    assert settings_by_name["coco-keypoint-rcnn-fpn-1x"]["MODEL"]["ROI_HEADS"]["NUM_CLASSES"] == 1
    assert settings_by_name["coco-mask-rcnn-c4-2x"]["MODEL"]["MASK_ON"] is True and len(settings_by_name) == 27
    for kind in ("faster-rcnn", "mask-rcnn", "keypoint-rcnn"):  # MoCo's and JCL's
        model = settings_by_name[f"coco-{kind}-fpn-1x-plain-heads"]["MODEL"]
        assert model["RESNETS"]["NORM"] == model["FPN"]["NORM"] == "SyncBN" and model["ROI_MASK_HEAD"]["NORM"] == ""
        assert {name: model["ROI_BOX_HEAD"][name] for name in ("NORM", "NUM_CONV", "NUM_FC")} == {
            "NORM": "", "NUM_CONV": 0, "NUM_FC": 2
        }  # fmt: skip


def test_frozen_resnet_18_is_that_of_ring() -> None:
    frozen = detectors(ResNet(18), IMAGENET, "weights.pth", "to-res4.pth")["coco-mask-rcnn-fpn-1x-frozen"]["MODEL"]
    assert frozen["BACKBONE"]["FREEZE_AT"] == 5 and frozen["FPN"]["NORM"] == ""
    assert frozen["RESNETS"]["RES2_OUT_CHANNELS"] == 64 and frozen["RESNETS"]["DEPTH"] == 18
    assert frozen["RESNETS"]["NORM"] == "FrozenBN"


def test_the_files_say_what_the_settings_say() -> None:
    for settings in detectors(ResNet(152, groups=32, width_per_group=8), IMAGENET, "a.pth", "a.pth").values():
        assert yaml.safe_load("\n".join(yaml_lines(settings))) == settings


def test_a_run_is_exported_to_a_folder(tmp_path: Path) -> None:
    saved_run(tmp_path, replace(tiny_run(), encoders=Shared(Encoder(ResNet(18), LinearHead(8)))))
    result = export(tmp_path, "detectron2", tmp_path / "there")
    names = {path.name for path in (tmp_path / "there").iterdir()}
    assert {"weights.pth", "weights-to-res4.pth", "train_net.py", "coco-mask-rcnn-fpn-1x-frozen.yaml"} <= names
    part = torch.load(tmp_path / "there" / "weights-to-res4.pth", weights_only=True)["model"]
    assert not any(name.startswith("res5") for name in part) and "res4.1.conv2.norm.running_var" in part
    c4 = yaml.safe_load((tmp_path / "there" / "voc-faster-rcnn-c4-24k-frozen.yaml").read_text())
    assert c4["MODEL"]["WEIGHTS"] == "weights-to-res4.pth"
    assert "train_net.py --config-file" in result.how
    with pytest.raises(UserError, match="there exists already"):
        export(tmp_path, "detectron2", tmp_path / "there")


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        (ResNet(18, small=True), "3x3 convolution without max-pool"),
        (ResNet(18, small=True), "train at more than 96 pixels"),
        (ResNet(18, in_channels=2), "sees 2 channels"),
        (ResNet(18, width_multiplier=0.5), "depth 18 from 64 channels on"),
        (Timm("mobilenetv3_small_050"), "residual networks"),
    ],
    ids=repr,
)
def test_networks_that_detectron2_lacks_are_refused(choice: ResNet | Timm, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=sentence):
        export_backbone(encoder(choice), "detectron2", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_other_colors_are_refused(tmp_path: Path) -> None:
    frozen_encoder = encoder(ResNet(18))
    with pytest.raises(UserError, match="reads images as RGB"):
        export_backbone(
            replace(frozen_encoder, view=replace(frozen_encoder.view, space=Lab())), "detectron2", tmp_path / "out"
        )
    with pytest.raises(UserError, match="fc.weight is not a parameter of a residual network"):
        weights_there({"fc.weight": torch.zeros(1)})


def test_the_script_finds_the_weights_and_adds_the_norm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with stand-ins for its imports from Detectron2."""
    export_backbone(encoder(ResNet(18)), "detectron2", tmp_path / "out")
    script = stand_in(monkeypatch, tmp_path / "out" / "train_net.py")
    config = tmp_path / "out" / "coco-mask-rcnn-fpn-1x.yaml"
    arguments = types.SimpleNamespace(config_file=str(config), opts=["OUTPUT_DIR", "x"])
    cfg = script.configured(arguments)
    assert str(tmp_path / "out" / "weights.pth") == cfg.MODEL.WEIGHTS
    stage, channels = script.Res5ROIHeadsExtraNorm._build_res5_block(cfg)
    assert channels == 16 and isinstance(stage.norm, torch.nn.BatchNorm2d)
    assert script.Trainer.build_evaluator(cfg, "voc_2007_test") == "voc"
    assert script.Trainer.build_evaluator(cfg, "coco_2017_val") == "coco"


def stand_in(monkeypatch: pytest.MonkeyPatch, file: Path) -> Any:
    """The script as a module, with minimal stand-ins for Detectron2's names."""

    class Config(types.SimpleNamespace):
        def merge_from_file(self, path: str) -> None:
            settings = yaml.safe_load(Path(path).read_text())
            self.MODEL = types.SimpleNamespace(
                WEIGHTS=settings["MODEL"]["WEIGHTS"], RESNETS=types.SimpleNamespace(**settings["MODEL"]["RESNETS"])
            )

        def merge_from_list(self, words: list[str]) -> None:
            self.OUTPUT_DIR = words[1]

        def freeze(self) -> None:
            pass

    class Heads:
        @classmethod
        def _build_res5_block(cls, cfg: Any) -> tuple[torch.nn.Sequential, int]:
            return torch.nn.Sequential(torch.nn.Conv2d(8, 16, 1)), 16

    registry = types.SimpleNamespace(register=lambda: lambda kind: kind)
    parts: dict[str, dict[str, Any]] = {
        "": {},
        ".checkpoint": {"DetectionCheckpointer": object},
        ".config": {"get_cfg": Config},
        ".engine": {
            "DefaultTrainer": object,
            "default_argument_parser": object,
            "default_setup": lambda cfg, arguments: None,
            "launch": object,
        },
        ".evaluation": {
            "COCOEvaluator": lambda name, output_dir: "coco",
            "PascalVOCDetectionEvaluator": lambda name: "voc",
        },
        ".layers": {"get_norm": lambda norm, channels: torch.nn.BatchNorm2d(channels)},
        ".modeling": {},
        ".modeling.roi_heads": {"ROI_HEADS_REGISTRY": registry, "Res5ROIHeads": Heads},
    }
    for name, content in parts.items():
        module = types.ModuleType("detectron2" + name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, "detectron2" + name, module)
    spec = importlib.util.spec_from_file_location("train_net", file)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script
