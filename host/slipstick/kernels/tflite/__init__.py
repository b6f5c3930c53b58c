"""Operators of TensorFlow Lite networks on the host, bit for bit as tflite-micro."""
