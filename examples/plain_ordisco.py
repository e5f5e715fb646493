"""The plain ORDisCo on the embedded digits: five tasks of two new digits, 5 labels a class. Two minutes on a laptop.

    python examples/plain_ordisco.py

The whole method is in `ordisco/bench/plain.py`, one file to read beside the paper; this one feeds it.
"""

import torch

from ordisco import load, new_class, preset
from ordisco.bench.plain import PlainORDisCo


def main(steps: int = 100) -> float:
    """Learn the stream, print the accuracy on the classes seen after each task, and return the last."""
    torch.set_num_threads(1)  # such small networks gain nothing from more
    stream = new_class(load("digits"), increments=5, labels_per_class=1, seed=0)
    model = PlainORDisCo(preset("demo").replace(steps=steps), stream.num_classes, stream.image_shape)
    accuracy = 0.0
    for task, increment in enumerate(stream, start=1):
        model.learn(increment.images, increment.labels)  # label −1 marks an unlabelled image
        test = stream.test_seen_so_far
        predicted = torch.tensor(model.classes)[model.predict_slots(test.images)]
        accuracy = float((predicted == test.labels).float().mean())
        print(f"after task {task}: {100 * accuracy:.1f} % of {len(test):,} test images of {len(model.classes)} classes")
    return accuracy


if __name__ == "__main__":
    main()
