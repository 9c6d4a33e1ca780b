import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # modules here are imported as fuzzing.NAME, by benchmarks as well
