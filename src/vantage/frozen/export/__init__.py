"""Take a backbone elsewhere: torchvision, timm, safetensors, Detectron2."""
