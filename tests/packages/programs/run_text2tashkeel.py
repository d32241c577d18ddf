from inputs import give
from text2tashkeel import Diacritizer, available_models

names = sorted(map(str, available_models(bundled_only=True)))
give({name: Diacritizer(name).diacritize("بسم الله الرحمن الرحيم") for name in names})
