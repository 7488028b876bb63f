// Signatures in four algebras, for two channels. Conventions: docs/conventions.md.
//
// A tree is [colour, [branch, ...]], a forest an array of trees, a word an array of
// letters, a letter an array of one channel or (a bracket) two. An element is an array
// of pairings with the keys of an algebra; the coefficient of the unit is not stored.
"use strict";

const DIM = 2;
const CHANNELS = [...Array(DIM).keys()];

// Keys.

const treeText = ([colour, branches]) =>
  branches.length ? `[${branches.map(treeText).join(" ")}]_${colour}` : `${colour}`;
const forestText = (forest) => forest.map(treeText).join(" ") || "1";
const wordText = (word) => word.map((letter) => `(${letter.join("")})`).join("");
const vertices = (forest) =>
  forest.reduce((sum, [, branches]) => sum + 1 + vertices(branches), 0);

const planarTrees = (n) =>
  CHANNELS.flatMap((colour) => planarForests(n - 1).map((above) => [colour, above]));

function planarForests(n) {
  if (n === 0) return [[]];
  const found = [];
  for (let size = n; size > 0; size--)
    for (const tree of planarTrees(size))
      for (const rest of planarForests(n - size)) found.push([tree, ...rest]);
  return found;
}

function compare(a, b) {
  if (a[0] !== b[0]) return a[0] - b[0];
  for (let k = 0; k < Math.min(a[1].length, b[1].length); k++) {
    const order = compare(a[1][k], b[1][k]);
    if (order) return order;
  }
  return a[1].length - b[1].length;
}

const canonical = (forest) =>
  forest.map(([colour, above]) => [colour, canonical(above)]).sort(compare);

function words(letters, weight) {
  if (weight === 0) return [[]];
  return letters
    .filter((letter) => letter.length <= weight)
    .flatMap((letter) =>
      words(letters, weight - letter.length).map((rest) => [letter, ...rest]),
    );
}

// Coproducts: all ways [left, right] to cut a key, such that
// <a * b, key> is the sum of <a, left> <b, right>.

function shuffles(left, right) {
  if (!left.length) return [right];
  if (!right.length) return [left];
  return [
    ...shuffles(left.slice(1), right).map((rest) => [left[0], ...rest]),
    ...shuffles(left, right.slice(1)).map((rest) => [right[0], ...rest]),
  ];
}

// Cuts of two neighbours: what is pruned multiplies, trunks stand in order.
const join = (first, second, planar) =>
  first.flatMap(([pruned, trunk]) =>
    second.flatMap(([otherPruned, otherTrunk]) => {
      const together = planar
        ? shuffles(pruned, otherPruned)
        : [[...pruned, ...otherPruned]];
      return together.map((part) => [part, [...trunk, ...otherTrunk]]);
    }),
  );

const keepRoots = (forest, planar) =>
  forest.reduce(
    (terms, [colour, above]) =>
      join(
        terms,
        treeCuts(above, planar).map(([pruned, trunk]) => [pruned, [[colour, trunk]]]),
        planar,
      ),
    [[[], []]],
  );

// Planar: at every vertex, and below the forest, a leftmost run of branches is pruned.
// Otherwise each branch is pruned or keeps its root.
function treeCuts(forest, planar) {
  if (planar)
    return Array.from({ length: forest.length + 1 }, (_, k) =>
      join([[forest.slice(0, k), []]], keepRoots(forest.slice(k), true), true),
    ).flat();
  return forest.reduce(
    (terms, tree) => join(terms, [[[tree], []], ...keepRoots([tree], false)], false),
    [[[], []]],
  );
}

const wordCuts = (word) =>
  Array.from({ length: word.length + 1 }, (_, k) => [word.slice(0, k), word.slice(k)]);

// Algebras: keys by weight, and the product as a list of terms.

function algebra(name, depth, ofWeight, text, cuts, calculi) {
  const keys = [];
  for (let weight = 1; weight <= depth; weight++)
    for (const key of ofWeight(weight)) keys.push({ key, weight, text: text(key) });
  const index = new Map(keys.map(({ text }, position) => [text, position]));
  const terms = [];
  keys.forEach(({ key }, position) => {
    for (const [left, right] of cuts(key))
      if (left.length && right.length)
        terms.push([position, index.get(text(left)), index.get(text(right))]);
  });
  return { name, depth, keys, index, terms, calculi, ofTrees: text !== wordText };
}

function unique(forests) {
  const found = new Map(forests.map((f) => [forestText(canonical(f)), canonical(f)]));
  return [...found.values()].sort((a, b) => a.length - b.length);
}

const byTrees = (forests) => forests.sort((a, b) => a.length - b.length);

function algebras(depth) {
  const single = CHANNELS.map((i) => [i]);
  const pairs = CHANNELS.flatMap((i) =>
    CHANNELS.filter((j) => i <= j).map((j) => [i, j]),
  );
  const canonicalText = (forest) => forestText(canonical(forest));
  return [
    algebra("Shuffle", depth, (n) => words(single, n), wordText, wordCuts, [
      "stratonovich",
    ]),
    algebra("Ito", depth, (n) => words([...single, ...pairs], n), wordText, wordCuts, [
      "ito",
    ]),
    algebra(
      "GrossmanLarson",
      depth,
      (n) => unique(planarForests(n)),
      canonicalText,
      (forest) => treeCuts(forest, false),
      ["stratonovich", "ito"],
    ),
    algebra(
      "MuntheKaasWright",
      depth,
      (n) => byTrees(planarForests(n)),
      forestText,
      (forest) => treeCuts(forest, true),
      ["stratonovich", "ito"],
    ),
  ];
}

function product(alg, a, b) {
  const out = new Float64Array(alg.keys.length);
  for (const [position, left, right] of alg.terms) out[position] += a[left] * b[right];
  return out;
}

// One segment: the increments, and for Itô minus half the realised bracket dX dX^T.
function step(alg, increment, calculus) {
  const out = new Float64Array(alg.keys.length);
  const add = (text, value) => (out[alg.index.get(text)] += value);
  for (const i of CHANNELS) {
    add(alg.ofTrees ? `${i}` : `(${i})`, increment[i]);
    if (calculus !== "ito") continue;
    for (const j of CHANNELS) {
      const half = -0.5 * increment[i] * increment[j];
      add(alg.ofTrees ? `[${j}]_${i}` : `(${Math.min(i, j)}${Math.max(i, j)})`, half);
    }
  }
  return out;
}

function exponential(alg, x) {
  let out = x.map((value) => value / alg.depth);
  for (let k = alg.depth - 1; k > 0; k--) {
    const next = product(alg, x, out);
    out = x.map((value, position) => (value + next[position]) / k);
  }
  return out;
}

// Chen's identity, segment by segment.
function signature(alg, path, calculus) {
  let out = new Float64Array(alg.keys.length);
  for (let k = 1; k < path.length; k++) {
    const increment = CHANNELS.map((i) => path[k][i] - path[k - 1][i]);
    const segment = exponential(alg, step(alg, increment, calculus));
    const both = product(alg, out, segment);
    out = out.map((value, position) => value + segment[position] + both[position]);
  }
  return out;
}
