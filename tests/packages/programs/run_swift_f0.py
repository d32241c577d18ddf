from inputs import give, voice
from swift_f0 import SwiftF0

detector = SwiftF0()
whole = detector.detect(voice(), 16000)
stream = detector.stream()
parts = [stream.push(voice()[i : i + 4000], 16000) for i in range(0, 64000, 4000)]
give([whole.pitch_hz, whole.confidence, [part.pitch_hz for part in parts], stream.flush().pitch_hz])
