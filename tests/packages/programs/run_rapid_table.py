import numpy as np
from inputs import give, text_image
from rapid_table import RapidTable

words = [
    [[[30, 30], [300, 30], [300, 60], [30, 60]], "Name Qty", 0.9],
    [[[30, 110], [300, 110], [300, 140], [30, 140]], "Apple 12", 0.9],
]
found = RapidTable()(np.array(text_image(("Name   Qty", "Apple   12"), (400, 200))), words)
give([found[0], found[1]])
