import numpy as np
from inputs import give, text_image
from rapidocr_onnxruntime import RapidOCR

found, _ = RapidOCR()(np.array(text_image()))
give(found)
