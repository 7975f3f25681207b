"""Makes boxes out of the detector's map, which says for each place how likely it is part of a text, and cuts the lines out of the picture
as the reader wants them: 48 pixels high, blue first, values from -1 to 1, grey behind the shorter ones.

A box is left, top, right, bottom, in pixels of the picture. Lines that run askew get upright boxes, and are hardly read.
"""

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import Image
from scipy import ndimage

TEXT = 0.3  # a place is text from here on
SURE = 0.5  # a box is kept if its places have this mean
THINNEST = 3  # places
GROWTH = 1.6  # the detector marks the middle of a line: so much of area / circumference is added all around
MOST = 100  # lines of a picture
HEIGHT, NARROWEST, WIDEST = 48, 320, 2400  # pixels for the reader


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        pixels, likely = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("pixels", "likely"))
        (height, width), (rows, columns) = pixels.shape[:2], likely.shape[2:]
        scale = np.array([width / columns, height / rows] * 2)
        boxes = in_reading_order(found(likely[0, 0]) * scale)
        boxes = np.clip(boxes.round(), 0, [width, height] * 2).astype(np.int32)
        picture = Image.fromarray(pixels)
        # Where there is no text the reader gets a line that nobody looks at, since it cannot read none at all.
        lines = [line(picture.crop(box)) for box in boxes.tolist()] or [np.zeros((3, HEIGHT, NARROWEST), np.float32)]
        x = np.zeros((len(lines), 3, HEIGHT, max(NARROWEST, *(each.shape[2] for each in lines))), np.float32)
        for row, each in zip(x, lines, strict=True):
            row[:, :, : each.shape[2]] = each
        return pb_utils.InferenceResponse([pb_utils.Tensor("boxes", boxes), pb_utils.Tensor("x", x)])


def found(likely):
    """The boxes in places of the map, as an array of shape [boxes, 4]."""
    parts, count = ndimage.label(likely > TEXT)
    means = ndimage.mean(likely, parts, np.arange(1, count + 1))
    boxes = []
    for (rows, columns), mean in zip(ndimage.find_objects(parts), means, strict=True):
        height, width = rows.stop - rows.start, columns.stop - columns.start
        if mean >= SURE and min(height, width) >= THINNEST:
            more = GROWTH * height * width / (2 * (height + width))
            boxes.append([columns.start - more, rows.start - more, columns.stop + more, rows.stop + more])
    return np.array(boxes[:MOST], np.float64).reshape(-1, 4)


def in_reading_order(boxes):
    """From top to bottom; boxes whose middle is beside the first of a row are in that row, which goes from left to right. Boxes of a row
    that overlap are parts of one line."""
    rows = []
    for box in sorted(boxes.tolist(), key=lambda box: box[1]):
        middle = (box[1] + box[3]) / 2
        if rows and middle < rows[-1][0][3]:
            rows[-1].append(box)
        else:
            rows.append([box])
    return np.array([box for row in rows for box in joined(sorted(row))]).reshape(-1, 4)


def joined(row):
    whole = row[:1]
    for box in row[1:]:
        left, top, right, bottom = whole[-1]
        if box[0] < right:
            whole[-1] = [left, min(top, box[1]), max(right, box[2]), max(bottom, box[3])]
        else:
            whole.append(box)
    return whole


def line(crop):
    width = min(WIDEST, max(1, round(HEIGHT * crop.width / max(1, crop.height))))
    return np.asarray(crop.resize((width, HEIGHT)), np.float32)[:, :, ::-1].transpose(2, 0, 1) / 127.5 - 1
