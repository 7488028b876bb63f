// The page: a canvas to draw on, and one cell for each coordinate.
"use strict";

const COLOURS = ["#1b8a6b", "#e08a2e"];
const NAMES = {
  Shuffle: "words",
  Ito: "words with bracket letters",
  GrossmanLarson: "non-planar trees",
  MuntheKaasWright: "planar trees",
};
const SVG = "http://www.w3.org/2000/svg";

const get = (id) => document.getElementById(id);
const state = { path: [], depth: 2, every: 1, drawing: false, sections: [] };

// Pictures of keys, in units of one vertex.

function svg(width, height, unit) {
  const node = document.createElementNS(SVG, "svg");
  node.setAttribute("viewBox", `0 0 ${width} ${height}`);
  node.setAttribute("width", width * unit);
  node.setAttribute("height", height * unit);
  node.setAttribute("aria-hidden", "true");
  return node;
}

function shape(parent, kind, attributes) {
  const node = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  parent.append(node);
}

function drawForest(forest) {
  const points = [];
  const edges = [];
  const place = ([colour, branches], left, level) => {
    let right = left;
    const above = branches.map((branch) => {
      const child = place(branch, right, level + 1);
      right = child.right;
      return child.point;
    });
    right = Math.max(right, left + 1);
    const xs = above.length ? above.map((p) => p.x) : [left + 0.5];
    const point = { x: xs.reduce((a, b) => a + b) / xs.length, level, colour };
    points.push(point);
    above.forEach((other) => edges.push([point, other]));
    return { right, point };
  };
  const width = forest.reduce((left, tree) => place(tree, left, 0).right, 0);
  const height = state.depth;
  const y = (point) => height - 0.5 - point.level;
  const node = svg(width, height, 15);
  for (const [a, b] of edges)
    shape(node, "line", { x1: a.x, y1: y(a), x2: b.x, y2: y(b), class: "edge" });
  for (const p of points)
    shape(node, "circle", { cx: p.x, cy: y(p), r: 0.36, fill: COLOURS[p.colour] });
  return node;
}

function drawWord(word) {
  const width = word.reduce((sum, letter) => sum + letter.length + 0.35, -0.35);
  const node = svg(width, 1.5, 15);
  let x = 0;
  for (const letter of word) {
    letter.forEach((channel, k) =>
      shape(node, "rect", {
        x: x + k + 0.04,
        y: 0.1,
        width: 0.92,
        height: 0.92,
        fill: COLOURS[channel],
      }),
    );
    if (letter.length > 1)
      shape(node, "line", {
        x1: x + 0.1,
        x2: x + letter.length - 0.1,
        y1: 1.3,
        y2: 1.3,
        class: "edge",
      });
    x += letter.length + 0.35;
  }
  return node;
}

// Cells.

function element(kind, parent, className, text) {
  const node = document.createElement(kind);
  if (className) node.className = className;
  if (text) node.textContent = text;
  parent.append(node);
  return node;
}

function build() {
  get("algebras").replaceChildren();
  state.sections = algebras(state.depth).map((alg) => {
    const section = element("section", get("algebras"));
    section.dataset.algebra = alg.name;
    const title = element("h2", section, "", alg.name);
    element("small", title, "", ` ${NAMES[alg.name]}, ${alg.keys.length} coordinates`);
    const grid = element("div", section, "grid");
    const cells = alg.keys.map(({ key, text }) => {
      const cell = element("div", grid, "cell");
      cell.dataset.key = text;
      cell.title = text;
      cell.append(alg.ofTrees ? drawForest(key) : drawWord(key));
      const rows = alg.calculi.map((calculus) => {
        const row = element("div", cell, `row ${calculus}`);
        const bar = element("i", element("span", row, "track"));
        return { calculus, bar, number: element("b", row) };
      });
      return { cell, rows };
    });
    return { alg, cells };
  });
}

const samples = () => {
  const end = Math.max(1, Math.ceil(state.path.length * get("until").value));
  const shown = state.path.slice(0, end);
  const last = shown.length - 1;
  return shown.filter((_, k) => k % state.every === 0 || k === last);
};

function shown(value) {
  const text = Math.abs(value).toFixed(3);
  return value < 0 && Number(text) ? `\u2212${text}` : text;
}

function update() {
  const path = samples();
  const results = state.sections.map(({ alg, cells }) => ({
    cells,
    values: Object.fromEntries(
      alg.calculi.map((calculus) => [calculus, signature(alg, path, calculus)]),
    ),
  }));
  // One scale for all, so that bars can be compared.
  const all = results.flatMap(({ values }) =>
    Object.values(values).flatMap((array) => Array.from(array, Math.abs)),
  );
  const scale = Math.max(0.25, ...all);
  for (const { cells, values } of results)
    cells.forEach(({ cell, rows }, position) => {
      for (const { calculus, bar, number } of rows) {
        const value = values[calculus][position];
        cell.dataset[calculus] = value;
        number.textContent = shown(value);
        const share = (50 * Math.abs(value)) / scale;
        bar.style.width = `${share}%`;
        bar.style.left = `${value < 0 ? 50 - share : 50}%`;
      }
    });
  get("count").textContent = `${path.length} samples`;
  paint(path);
}

// The canvas: both channels run from -1 to 1.

function paint(path) {
  const canvas = get("canvas");
  const size = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const at = ([x, y]) => [((1 + x) * size) / 2, ((1 - y) * size) / 2];
  context.clearRect(0, 0, size, size);
  context.lineWidth = size / 600;
  [COLOURS[0], COLOURS[1]].forEach((colour, k) => {
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(...at(k ? [0, -1] : [-1, 0]));
    context.lineTo(...at(k ? [0, 1] : [1, 0]));
    context.stroke();
  });
  if (!path.length) return;
  context.strokeStyle = getComputedStyle(canvas).color;
  context.lineWidth = size / 220;
  context.lineJoin = "round";
  context.beginPath();
  path.forEach((point, k) => (k ? context.lineTo : context.moveTo).apply(context, at(point)));
  context.stroke();
  context.fillStyle = context.strokeStyle;
  for (const point of path) {
    context.beginPath();
    context.arc(...at(point), size / 160, 0, 2 * Math.PI);
    context.fill();
  }
  context.beginPath();
  context.arc(...at(path[path.length - 1]), size / 70, 0, 2 * Math.PI);
  context.fill();
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    update();
  });
}

function pointer(event) {
  const box = get("canvas").getBoundingClientRect();
  const clip = (value) => Math.max(-1, Math.min(1, value));
  return [
    clip((2 * (event.clientX - box.left)) / box.width - 1),
    clip(1 - (2 * (event.clientY - box.top)) / box.height),
  ];
}

function extend(event) {
  const point = pointer(event);
  const last = state.path[state.path.length - 1];
  if (!last || Math.hypot(point[0] - last[0], point[1] - last[1]) > 0.02)
    state.path.push(point);
  redraw();
}

// Paths to start from.

const along = (count, point) =>
  Array.from({ length: count + 1 }, (_, k) => point(k / count));

function brownian() {
  const normal = () =>
    Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  for (;;) {
    const path = [[0, 0]];
    while (path.length < 200) {
      const [x, y] = path[path.length - 1];
      path.push([x + 0.05 * normal(), y + 0.05 * normal()]);
    }
    if (path.every(([x, y]) => Math.max(Math.abs(x), Math.abs(y)) <= 1)) return path;
  }
}

const EXAMPLES = {
  parabola: () => along(60, (t) => [1.6 * t - 0.8, 1.6 * t * t - 0.8]),
  circle: () =>
    along(80, (t) => [0.7 * Math.cos(2 * Math.PI * t), 0.7 * Math.sin(2 * Math.PI * t)]),
  eight: () =>
    along(100, (t) => [0.8 * Math.sin(2 * Math.PI * t), 0.6 * Math.sin(4 * Math.PI * t)]),
  brownian,
};

function show(path) {
  state.path = path;
  get("until").value = 1;
  redraw();
}

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("depth")) state.depth = given.get("depth") === "3" ? 3 : 2;
  if (given.has("every")) state.every = Math.max(1, parseInt(given.get("every")) || 1);
  get("depth").value = state.depth;
  get("every").value = state.every;
  const numbers = (given.get("path") || "")
    .split(";")
    .map((point) => point.split(",").map(Number))
    .filter((point) => point.length === 2 && point.every(Number.isFinite));
  return numbers.length ? numbers : EXAMPLES.parabola();
}

function start() {
  const canvas = get("canvas");
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    state.drawing = true;
    show([]);
    extend(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (state.drawing) extend(event);
  });
  for (const kind of ["pointerup", "pointercancel"])
    canvas.addEventListener(kind, () => (state.drawing = false));
  for (const [name, path] of Object.entries(EXAMPLES))
    get(name).addEventListener("click", () => show(path()));
  get("until").addEventListener("input", redraw);
  get("every").addEventListener("input", (event) => {
    state.every = Number(event.target.value);
    redraw();
  });
  get("depth").addEventListener("change", (event) => {
    state.depth = Number(event.target.value);
    build();
    redraw();
  });
  window.addEventListener("resize", redraw);
  state.path = readHash();
  build();
  update();
}

start();
