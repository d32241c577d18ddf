from inputs import give
from magika import Magika

magika = Magika()
files = [
    b"import os\nprint(os.getcwd())\n" * 20,
    b"# Title\n\nSome *markdown* [x](y)\n" * 10,
    b"<html><body>hi</body></html>" * 5,
]
found = [magika.identify_bytes(file) for file in files]
give([[one.output.label, one.score] for one in found])
