"""What a drag of the threshold makes Qt and napari do, and what Undo does: each thing once."""

import numpy as np
import pytest
from napari_helpers import overlays, settle, smooth
from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QApplication

from napari_ecc._controller.session import remove_added


class Layouts(QObject):
    """Whether a widget is asked to lay out its children."""

    def __init__(self, widget):
        super().__init__()
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, _, event):
        self.count += event.type() == QEvent.Type.LayoutRequest
        return False


def dragged(panel):
    """Move the threshold over the whole curve, and say how often the counts changed."""
    texts = set()
    for at in panel.model.curve.thresholds[::16].tolist():
        panel.plot.threshold_moved.emit(at)
        texts.add(panel.readout.text())
        QApplication.processEvents()
    return len(texts)


def test_the_window_is_not_laid_out_anew_while_numbers_change(explorer, qtbot):
    _, panel = explorer(smooth(40, 40), show=True)
    settle(qtbot, panel)
    dragged(panel)  # Some widgets are laid out late, in the first drag.
    layouts = Layouts(panel)
    assert dragged(panel) > 8
    assert layouts.count == 0
    # A row that is shown or hidden needs another layout, which is noticed.
    panel.offer_least.visible = not panel.offer_least.visible
    qtbot.waitUntil(lambda: layouts.count > 0)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("superlevel", [False, True])
def test_contrast_limits_of_the_set_change_once_at_each_move(explorer, qtbot, dtype, superlevel):
    image = (200 * smooth(30, 30)).astype(dtype)
    viewer, panel = explorer(image)
    panel.model.superlevel = superlevel
    settle(qtbot, panel)
    (layer,) = overlays(viewer)
    changes = []
    layer.events.contrast_limits.connect(changes.append)
    thresholds = panel.model.curve.thresholds[1:-1:16].tolist()
    for at in thresholds:
        panel.model.threshold = at
    assert len(changes) == len(thresholds)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_undo_removes_layers_in_one_batch_and_selects_as_before(make_napari_viewer_proxy, kept):
    """Of layers that the user has removed, nothing is left to do."""
    viewer = make_napari_viewer_proxy()
    image = viewer.add_image(np.zeros((5, 5)))
    added = [viewer.add_labels(np.eye(5, dtype=int)) for _ in range(2)]
    for layer in added[kept:]:
        viewer.layers.remove(layer)
    other = viewer.add_points(np.zeros((1, 2)))
    batches = []
    viewer.layers.events.end_batch.connect(batches.append)
    remove_added(viewer, added, {image})
    assert list(viewer.layers) == [image, other]
    assert len(batches) == min(kept, 1)
    assert set(viewer.layers.selection) == ({image} if kept else {other})
