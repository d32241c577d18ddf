import ddddocr
from inputs import give, png, text_image

image = png(text_image(("aB7k9",), (160, 90)))
reader = ddddocr.DdddOcr(show_ad=False)
detector = ddddocr.DdddOcr(det=True, ocr=False, show_ad=False)
give([reader.classification(image), detector.detection(image)])
