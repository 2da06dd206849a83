"""Train and test a detector from the weights beside this file, with Detectron2.

    python train_net.py --config-file coco-mask-rcnn-fpn-1x.yaml --num-gpus 8

Data sets lie where Detectron2 looks for them (DETECTRON2_DATASETS). Any setting may follow, such as
SOLVER.IMS_PER_BATCH 8 SOLVER.BASE_LR 0.01 OUTPUT_DIR runs/first; --resume goes on, --eval-only only tests.
"""

from pathlib import Path
from typing import Any

from detectron2.checkpoint import DetectionCheckpointer  # pyright: ignore[reportMissingImports]
from detectron2.config import get_cfg  # pyright: ignore[reportMissingImports]
from detectron2.engine import (  # pyright: ignore[reportMissingImports]
    DefaultTrainer,
    default_argument_parser,
    default_setup,
    launch,
)
from detectron2.evaluation import (  # pyright: ignore[reportMissingImports]
    COCOEvaluator,
    PascalVOCDetectionEvaluator,
)
from detectron2.layers import get_norm  # pyright: ignore[reportMissingImports]
from detectron2.modeling.roi_heads import ROI_HEADS_REGISTRY, Res5ROIHeads  # pyright: ignore[reportMissingImports]


@ROI_HEADS_REGISTRY.register()
class Res5ROIHeadsExtraNorm(Res5ROIHeads):
    """The C4 head with one more normalisation after its last stage, whose outputs it makes alike in scale."""

    @classmethod
    def _build_res5_block(cls, cfg: Any) -> tuple[Any, int]:
        stage, channels = super()._build_res5_block(cfg)
        stage.add_module("norm", get_norm(cfg.MODEL.RESNETS.NORM, channels))
        return stage, channels


class Trainer(DefaultTrainer):
    """Detectron2's own loop, with the data set's own measure."""

    @classmethod
    def build_evaluator(cls, cfg: Any, dataset_name: str, output_folder: str | None = None) -> Any:
        """Average precision as Pascal VOC or COCO define it."""
        if dataset_name.startswith("voc"):
            return PascalVOCDetectionEvaluator(dataset_name)
        return COCOEvaluator(dataset_name, output_dir=output_folder or str(Path(cfg.OUTPUT_DIR) / "inference"))


def configured(arguments: Any) -> Any:
    """The settings of the file, with what the command line changes; weights beside the file are found there."""
    cfg = get_cfg()
    cfg.merge_from_file(arguments.config_file)
    cfg.merge_from_list(arguments.opts)
    beside = Path(arguments.config_file).absolute().parent / cfg.MODEL.WEIGHTS
    if beside.is_file():
        cfg.MODEL.WEIGHTS = str(beside)
    cfg.freeze()
    default_setup(cfg, arguments)
    return cfg


def main(arguments: Any) -> Any:
    """Train, or only test."""
    cfg = configured(arguments)
    if arguments.eval_only:
        model = Trainer.build_model(cfg)
        DetectionCheckpointer(model, save_dir=cfg.OUTPUT_DIR).resume_or_load(cfg.MODEL.WEIGHTS, resume=arguments.resume)
        return Trainer.test(cfg, model)
    trainer = Trainer(cfg)
    trainer.resume_or_load(resume=arguments.resume)
    return trainer.train()


if __name__ == "__main__":
    told = default_argument_parser().parse_args()
    launch(
        main,
        told.num_gpus,
        num_machines=told.num_machines,
        machine_rank=told.machine_rank,
        dist_url=told.dist_url,
        args=(told,),
    )
