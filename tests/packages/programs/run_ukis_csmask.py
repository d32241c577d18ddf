import cv2
import numpy as np
from inputs import give
from ukis_csmask.mask import CSmask

soft = cv2.resize(np.random.default_rng(0).random((9, 9, 6), np.float32) * 0.3, (256, 256))
soft[60:120, 60:160] += 0.6
bands = ["blue", "green", "red", "nir", "swir16", "swir22"]
mask = CSmask(img=soft, band_order=bands, nodata_value=None, product_level="l1c")
give([np.bincount(mask.csm.ravel()), int(mask.valid.sum())])
