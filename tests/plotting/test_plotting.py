"""Figures: they show the curve's own numbers, and leave no state behind."""

import sys
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from processes import run_python

import ecc_core as ecc
from ecc_core.plotting import (
    THRESHOLD_COLOURS,
    plot_barcode,
    plot_curve,
    plot_curves,
    plot_level_sets,
)


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (20, 30), dtype=np.uint8)


def curve_line(ax: Axes) -> Any:
    """Return the one line that is no straight line across the axes."""
    (line,) = [line for line in ax.lines if line.get_drawstyle() != "default"]
    return line


def legend_texts(place: Any) -> list[str]:
    """Return the names in the legend of axes."""
    return [text.get_text() for text in place.get_legend().get_texts()]


def height_at(line: Any, t: float) -> float:
    """Return the height of a drawn line at an abscissa, as matplotlib draws its steps."""
    x = line.get_xdata()
    y = line.get_ydata()
    if line.get_drawstyle() == "steps-post":
        return y[np.searchsorted(x, t, side="right") - 1]
    assert line.get_drawstyle() == "steps-pre"
    return y[np.searchsorted(x, t, side="left")]


class TestPlotCurve:
    @pytest.mark.parametrize("superlevel", [False, True])
    @pytest.mark.parametrize("as_pair", [False, True])
    def test_it_is_exact_everywhere(
        self, image: np.ndarray, superlevel: bool, as_pair: bool
    ) -> None:
        """A pair of arrays does not say whether its sets are superlevel sets."""
        curve = ecc.euler_curve(image, "exact", superlevel=superlevel)
        ax = plot_curve(tuple(curve), superlevel=superlevel) if as_pair else curve.plot()
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("threshold", "Euler characteristic")
        zero, line = ax.lines
        assert list(zero.get_ydata()) == [0, 0]
        levels = line.get_xdata()
        between = (levels[:-1].astype(float) + levels[1:]) / 2
        everywhere = [*levels, *between]
        sets = [image >= t if superlevel else image <= t for t in everywhere]
        heights = [height_at(line, t) for t in everywhere]
        assert heights == [ecc.euler_number(binary) for binary in sets]

    def test_onto_given_axes(self, image: np.ndarray) -> None:
        """Given axes keep their own label, and get the line at zero once."""
        ax, own = Figure().subplots(2)
        curve = ecc.euler_curve(image)
        assert plot_curve(curve, ax, label="first", color="red") is ax
        assert plot_curve(curve, ax, label="second", color="red") is ax
        assert ax.get_legend_handles_labels()[1] == ["first", "second"]
        assert len(ax.lines) == 3
        assert to_hex(ax.lines[1].get_color()) == "#ff0000"
        own.set_xlabel("gray value")
        plot_curve(ecc.euler_curve(image), own)
        assert own.get_xlabel() == "gray value"

    def test_batch(self, image: np.ndarray) -> None:
        curve = ecc.euler_curve(np.stack([image, image // 2, image // 3]), axis=(1, 2))
        lines = [x for x in plot_curve(curve).lines if x.get_drawstyle() != "default"]
        assert [line.get_ydata().tolist() for line in lines] == curve.values.tolist()

    def test_infinite_thresholds_are_left_out(self) -> None:
        ax = plot_curve(([-np.inf, 0, 1, np.inf], [1, 2, 3, 1]))
        assert curve_line(ax).get_xdata().tolist() == [0, 1]
        assert curve_line(ax).get_ydata().tolist() == [2, 3]
        assert np.isfinite(ax.get_xlim()).all()

    def test_without_pyplot(self) -> None:
        """No window, and no figure that pyplot keeps alive."""
        code = (
            "import sys; from ecc_core.io import write_figure\n"
            "from ecc_core.plotting import plot_curve\n"
            "ax = plot_curve(([0, 1], [1, 1])); ax.figure.canvas.draw()\n"
            "assert 'matplotlib.pyplot' not in sys.modules"
        )
        done = run_python(code)
        assert done.returncode == 0, done.stderr

    def test_matplotlib_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in [m for m in sys.modules if m.partition(".")[0] == "matplotlib"]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        message = r'plotting needs matplotlib: pip install "\.\[io\]"'
        curve = [0, 1], [1, 1]
        with pytest.raises(ImportError, match=message):
            plot_curve(curve)
        with pytest.raises(ImportError, match=message):
            plot_curves({"a": curve})


class TestPlotCurves:
    def test_few_are_named(self, image: np.ndarray) -> None:
        curve = ecc.euler_curve(image)
        names = ["a.png", "_b.png", "$c$.png", "d"]
        figure = plot_curves(dict.fromkeys(names, curve))
        FigureCanvasAgg(figure).draw()
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == names
        assert not any(text.get_parse_math() for text in legend.get_texts())
        colours = [to_hex(line.get_color()) for line in legend.get_lines()]
        assert colours == [to_hex(x.get_color()) for x in figure.axes[0].lines[1:]]
        assert len(set(colours)) == 4

    @pytest.mark.parametrize("superlevel", [False, True])
    def test_many_as_a_mean_and_a_band(self, superlevel: bool) -> None:
        images = np.random.default_rng(1).integers(0, 30, (11, 8, 9))
        grids = [np.arange(i % 3, 29, 2) for i in range(11)]
        curves = {
            str(i): ecc.euler_curve(image, at, superlevel=superlevel)
            for i, (image, at) in enumerate(zip(images, grids, strict=True))
        }

        def numbers_at(t: int) -> list[int]:
            """Return the value of each curve, which is that at the last set before."""
            numbers = []
            for image, at in zip(images, grids, strict=True):
                binary = image >= at[at >= t][0] if superlevel else image <= at[at <= t][-1]
                numbers.append(ecc.euler_number(binary))
            return numbers

        figure = plot_curves(curves)
        texts = [text.get_text() for text in figure.legends[0].get_texts()]
        assert texts == ["mean of 11", "90 % of them"]
        (ax,) = figure.axes
        line = curve_line(ax)
        (band,) = ax.collections
        heights = band.get_paths()[0].vertices[:, 1]
        numbers = [numbers_at(t) for t in range(3, 26)]
        drawn_means = [height_at(line, t) for t in range(3, 26)]
        assert drawn_means == pytest.approx(np.mean(numbers, axis=1))
        ends = np.quantile(numbers, [0.05, 0.95], axis=1)
        assert np.isclose(heights[:, None], ends.ravel()).any(axis=0).all()

    def test_many_regions_and_few(self, image: np.ndarray) -> None:
        labels = np.repeat(np.arange(1, 21), 30).reshape(20, 30)
        curves = ecc.region_curves(image, labels, 9)
        mean = curve_line(curves.plot()).get_ydata()
        np.testing.assert_allclose(mean, curves.values.mean(axis=0))
        betti = ecc.region_betti_curves(image, labels, 9)
        assert len(legend_texts(betti.plot())) == 2
        ax = ecc.region_curves(image, labels // 5 + 1, 9).plot()
        assert legend_texts(ax) == [f"label {i}" for i in range(1, 6)]
        colours = {line.get_color() for line in ax.get_legend().get_lines()}
        assert len(colours) == 5

    @pytest.mark.parametrize("quantity", ["regions", "Betti numbers"])
    def test_the_legend_of_axes_is_beside_them(self, image: np.ndarray, quantity: str) -> None:
        if quantity == "regions":
            labels = np.repeat(np.arange(1, 6), 120).reshape(20, 30)
            ax = ecc.region_curves(image, labels, 9).plot()
        else:
            ax = ecc.betti_curves(image).plot()
        FigureCanvasAgg(ax.figure).draw()
        place = ax.get_legend().get_window_extent()
        assert ax.get_window_extent().x1 <= place.x0
        assert place.x1 <= ax.figure.bbox.x1 + 1

    @pytest.mark.parametrize(("peak", "scale"), [(-300, "linear"), (-30_000, "symlog")])
    def test_a_peak_does_not_hide_the_rest(self, peak: int, scale: str) -> None:
        """But for axes that are given, whose scale is their owner's."""
        t = np.arange(100)
        low = np.where(t < 50, -30, 20)
        curve = t, np.where(t == 9, peak, low)
        assert plot_curve(curve).get_yscale() == scale
        (ax,) = plot_curves({"a": curve}).axes
        assert ax.get_yscale() == scale
        given = Figure().add_subplot()
        plot_curve(curve, given)
        assert given.get_yscale() == "linear"

    def test_the_scale_of_a_constant_is_linear(self) -> None:
        constant = ecc.euler_curve(np.zeros((3, 3)))
        assert plot_curve(constant).get_yscale() == "linear"

    @pytest.mark.parametrize("function", [ecc.euler_curve, ecc.betti_curves, ecc.minkowski_curves])
    @pytest.mark.parametrize("name", ["a", "a file with a name of sixty characters" + "." * 22])
    def test_the_legend_covers_nothing(self, image: np.ndarray, function: Any, name: str) -> None:
        figure = plot_curves({f"{name}{i}": function(image + i) for i in range(10)})
        FigureCanvasAgg(figure).draw()
        legend = figure.legends[0].get_window_extent()
        assert legend.x1 <= figure.bbox.x1 + 1
        assert max(ax.get_tightbbox().x1 for ax in figure.axes) <= legend.x0
        widths = [ax.get_window_extent().width / figure.dpi for ax in figure.axes]
        assert min(widths) > 4.5

    def test_superlevel_sets_of_several_quantities(self, image: np.ndarray) -> None:
        figure = plot_curves({"a": ecc.betti_curves(image, [50, 99], superlevel=True)})
        assert [ax.get_ylabel() for ax in figure.axes] == ["$b_0$", "$b_1$"]
        assert [ax.get_ylim()[0] for ax in figure.axes] == [0, 0]
        assert [ax.lines[-1].get_drawstyle() for ax in figure.axes] == ["steps-pre"] * 2

    def test_nothing_but_zeros_and_no_curve(self) -> None:
        figure = plot_curves({"a": ecc.betti_curves(np.zeros((5, 5)), [0, 1])})
        assert [ax.get_ylim()[1] >= 1 for ax in figure.axes] == [True, True]
        FigureCanvasAgg(plot_curves({})).draw()


class TestPlotLevelSets:
    def test_numbers_and_colours(self) -> None:
        image = np.random.default_rng(0).integers(-128, 128, (20, 30), dtype=np.int8)
        thresholds = (-90.5, 40, 100)
        curves = {
            n: ecc.euler_curve(image, np.union1d(image, thresholds), connectivity=c)
            for n, c in ((8, 2), (4, 1))
        }
        sets = [image <= t for t in thresholds]
        figure = plot_level_sets(image, sets, thresholds, curves, title="noise")
        ax, picture, *frames = figure.axes
        assert picture.get_title() == "noise"
        np.testing.assert_array_equal(picture.images[0].get_array(), image)
        assert legend_texts(picture) == ["8-connected", "4-connected"]
        for frame, t, binary, colour in zip(
            frames, thresholds, sets, THRESHOLD_COLOURS, strict=True
        ):
            np.testing.assert_array_equal(frame.images[0].get_array(), binary)
            assert frame.get_title() == f"X ≤ {t:g}".replace("-", "\N{MINUS SIGN}")
            chi = {n: ecc.euler_number(binary, c) for n, c in ((8, 2), (4, 1))}
            assert frame.get_xlabel() == f"$\\chi_{{8}} = {chi[8]}$\n$\\chi_{{4}} = {chi[4]}$"
            at_threshold = [line for line in ax.lines if line.get_xdata()[0] == t]
            (marks,) = [line for line in at_threshold if line.get_marker() == "o"]
            assert list(marks.get_ydata()) == list(chi.values())
            (across,) = [line for line in at_threshold if line.get_marker() != "o"]
            assert list(across.get_xdata()) == [t, t]
            shown = [marks.get_color(), across.get_color(), frame.title.get_color()]
            assert [to_hex(one) for one in shown] == [colour.lower()] * 3
        FigureCanvasAgg(figure).draw()

    @pytest.mark.parametrize("shape", [(20, 30), (30, 20), (20, 20)])
    @pytest.mark.parametrize("largest", [9, 9_999, 10_000, 999_999_999])
    def test_nothing_is_cut_off_or_overlaps(self, shape: tuple[int, int], largest: int) -> None:
        thresholds = (0, 100, 255)
        curve = (thresholds, (largest, -largest, 1))
        panel = np.zeros(shape)
        figure = plot_level_sets(panel, [panel] * 3, thresholds, {26: curve, 6: curve}, title="a")
        FigureCanvasAgg(figure).draw()
        plot, *panels = (ax.get_tightbbox() for ax in figure.axes)
        boxes = plot, *panels
        assert np.min([box.min - figure.bbox.min for box in boxes]) >= -1
        assert np.min([figure.bbox.max - box.max for box in boxes]) >= -1
        assert all(panel.y0 >= plot.y1 for panel in panels)

    def test_into_a_part_of_a_figure(self, image: np.ndarray) -> None:
        page = Figure(figsize=(7, 3))
        curves = {8: ecc.euler_curve(image)}
        left, right = page.subfigures(1, 2)
        assert plot_level_sets(image, [image > 9], [9], curves, figure=left) is left
        assert plot_level_sets(image, [image > 9], [9], curves, figure=right) is right
        assert [len(part.axes) for part in (left, right)] == [3, 3]
        assert left.axes[0].get_position().bounds == right.axes[0].get_position().bounds


class TestPersistence:
    @pytest.fixture
    def pairs(self) -> Any:
        return ecc.persistence_pairs(np.random.default_rng(1).random((12, 13)))

    def assert_all_are_drawn(self, pairs: Any, drawn: list[list[float]]) -> None:
        """Bars are births and deaths; classes that do not die end where the last other one does."""
        ends = np.where(pairs.essential, pairs.deaths[~pairs.essential].max(), pairs.deaths)
        expected = np.stack([pairs.births, ends], axis=1)
        np.testing.assert_allclose(sorted(drawn), sorted(expected.tolist()))

    def test_diagram_has_all_classes_and_a_band(self, pairs: Any) -> None:
        ax = pairs.plot(min_persistence=0.25)
        points = [line.get_xydata() for line in ax.lines[1:]]
        self.assert_all_are_drawn(pairs, np.concatenate(points).tolist())
        (band,) = ax.collections
        path = band.get_paths()[0].vertices
        assert (path[:, 1] - path[:, 0]).max() == pytest.approx(0.25)
        assert legend_texts(ax) == ["components", "holes"]
        with pytest.raises(ValueError, match="`min_persistence` must not be negative"):
            pairs.plot(min_persistence=-1)

    def test_regions_have_the_band_of_their_persistence(self) -> None:
        image = np.random.default_rng(2).random((12, 13))
        found = ecc.persistent_regions(image, 0.3, superlevel=True)
        (band,) = found.plot().collections
        path = band.get_paths()[0].vertices
        assert (path[:, 1] - path[:, 0]).min() == pytest.approx(-0.3)

    def test_bars_reach_from_birth_to_death(self, pairs: Any) -> None:
        groups = [
            np.array(group.get_segments())[..., 0] for group in plot_barcode(pairs).collections
        ]
        self.assert_all_are_drawn(pairs, np.concatenate(groups).tolist())
        lengths = [np.ptp(group, axis=1).tolist() for group in groups]  # The longest come first.
        assert lengths == [sorted(of_group, reverse=True) for of_group in lengths]
