import numpy as np
from inputs import blurred_image, give
from nudenet import NudeDetector

detector = NudeDetector()
pixels = np.random.default_rng(0).random((1, 3, 320, 320), np.float32)
(scores,) = detector.onnx_session.run(None, {detector.input_name: pixels})
give([detector.detect(np.array(blurred_image())), scores[0, :, ::50]])
