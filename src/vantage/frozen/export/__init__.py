"""Take a backbone elsewhere: torchvision, timm, safetensors, Detectron2, ONNX, `torch.export`."""
