"""The pictures that users of this field draw. Needs the extra `plots` (Matplotlib).

Every picture takes data and an optional `ax`, draws in the library's style
(`plt.style.use("arborax.arborax")` has it for your own figures) and returns the axes.
Matplotlib is imported when the first picture is drawn. `html_page` writes a report.
"""

from ._bars import signature_bars as signature_bars
from ._ellipses import covariance_ellipses as covariance_ellipses
from ._page import html_image as html_image, html_page as html_page
from ._paths import fan_chart as fan_chart, sample_paths as sample_paths
from ._sphere import on_sphere as on_sphere, rotations as rotations
from ._training import training_curve as training_curve
from ._trees import draw_forest as draw_forest
from ._two_sample import permutation_histogram as permutation_histogram
