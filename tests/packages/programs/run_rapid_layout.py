import numpy as np
from inputs import give, text_image
from rapid_layout import RapidLayout

page = text_image(
    ("A heading of the page", *["some text in lines of a paragraph"] * 4), (800, 1000)
)
found = RapidLayout(model_type="pp_layout_cdla")(np.array(page))
give([found.boxes, found.scores, found.class_names])
