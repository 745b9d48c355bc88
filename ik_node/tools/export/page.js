// SPDX-License-Identifier: Apache-2.0
// The page of an arm. What the joints do is worked out by the kernels of ik_node, as WebAssembly: see Kernels.
'use strict';

const element = (id) => document.getElementById(id);
const make = (tag, values, parent) => parent.appendChild(Object.assign(document.createElement(tag), values));
const degrees = (radians) => (radians * 180) / Math.PI;
const [SOLVED, UNREACHABLE] = [0, 1];
const IDEAS = {
  ccd: 'Cyclic coordinate descent turns one joint at a time, from the tool to the base: each as far as brings the ' +
    'tool nearest to the target. The two lines start at the joint whose turn is next: it turns one onto the other.',
  transpose: "The Jacobian's transpose turns all joints at once, each in proportion to how much its turn moves the " +
    'tool towards the target, as if a rubber band pulled the tool along the red line.',
};

// The kernels: each call reads its arguments from the memory of WebAssembly, and leaves its results there.
class Kernels {
  constructor(exports, layout, n) {
    Object.assign(this, {exports, layout, n, memory: new Float64Array(exports.memory.buffer, exports.page())});
  }
  static async load({wasm, layout, joints}) {
    const bytes = Uint8Array.from(atob(wasm), (letter) => letter.charCodeAt(0));
    const module = await WebAssembly.compile(bytes);
    const instance = await WebAssembly.instantiate(module, {Math});
    return new Kernels(instance.exports, layout, joints.length);
  }
  put(name, values) { this.memory.set(values, this.layout[name]); }
  get(name, count, row = 0) { return [...this.memory.subarray(this.layout[name] + row * count).subarray(0, count)]; }

  // The best joints for a goal near seed, and why they do not meet it.
  answer(goal, seed) {
    this.put('goal', goal);
    this.put('seed', seed);
    this.exports.answer();
    const [status, position, direction, cause, amount, joint] = this.get('report', 6);
    return {q: this.get('q', this.n), status, position, direction, cause, amount, joint};
  }
  solutions(goal, seed) {
    this.put('goal', goal);
    this.put('seed', seed);
    const count = this.exports.solutions(), complete = count >= 0;
    const rows = [...Array(complete ? count : -1 - count).keys()].map((k) => this.get('found', this.n, k));
    const move = (q) => Math.max(...q.map((value, i) => Math.abs(value - seed[i])));
    return {complete, rows: rows.sort((a, b) => move(a) - move(b))};
  }
  // Where a number of steps of a method leads from seed; done: how many of them there are.
  steps(method, goal, seed, count, limited) {
    this.put('goal', goal);
    this.put('seed', seed);
    const done = this.exports[`steps_${method}`](count, limited ? 1 : 0);
    return {done, q: this.get('q', this.n)};
  }
  // The poses of all links, joint axes and points, the tool, and its errors.
  place(goal, q) {
    this.put('goal', goal);
    this.put('q', q);
    this.exports.place();
    const m = data.rows.length, frame = (k) => this.get('frames', 3, k), [, position, direction] = this.get('report', 6);
    return {
      poses: [...Array(m + 1).keys()].map((k) => this.get('poses', 12, k)),
      points: data.rows.map((_, i) => frame(m + i)), tool: frame(2 * m), axis: frame(2 * m + 1), position, direction,
    };
  }
}

const data = JSON.parse(element('data').textContent);
const reach = data.reach, n = data.joints.length, m = data.rows.length;
const state = {goal: new Float64Array(9).fill(NaN), q: [...data.start], method: '', answer: null, ghosts: [], hover: ''};
let kernels, view, placed, kept, waiting = false;

// The target

const position = () => [...state.goal.slice(0, 3)];
const direction = () => [...state.goal.slice(3, 6)];
const directed = () => !Number.isNaN(state.goal[3]);

function aim(point, axis = null) {
  const far = norm(point) / (4 * reach);
  state.goal.set(far > 1 ? times(point, 1 / far) : point);
  if (axis) state.goal.set(axis, 3);
  solve();
}

function solve() {
  state.answer = null;
  if (state.method) restart();
  else {
    state.answer = kernels.answer(state.goal, state.q);
    state.q = state.answer.q;
  }
  refresh();
}

// The target follows joints that were moved by hand, unless somebody watches a method.
function joined() {
  if (state.method) restart();
  else {
    const {tool, axis} = kernels.place(state.goal, state.q);
    state.goal.set(tool);
    if (directed()) state.goal.set(axis, 3);
    state.answer = null;
  }
  refresh();
}

// Step by step

let steps, player = 0;

function restart(q = state.q) {
  pause();
  steps = {seed: [...q], before: [...q], after: null, count: 0, turned: 0, ended: false, trace: []};
  state.q = [...q];
}

function follow() {
  steps.trace.push(kernels.place(state.goal, state.q).tool);
}

// One joint of a sweep of CCD, which goes through the joints from tip to base, or all joints of one step.
function step(whole) {
  if (steps.ended) return;
  if (!steps.trace.length) follow();
  const limited = element('limited').checked;
  if (steps.turned === 0) {
    const next = kernels.steps(state.method, state.goal, steps.seed, steps.count + 1, limited);
    if (next.done <= steps.count) {
      steps.ended = true;
      return pause();
    }
    steps.after = next.q;
  }
  steps.turned = whole ? m : steps.turned + 1;
  state.q = [...steps.before];
  for (let row = m - steps.turned; row < m; row++) state.q[data.rows[row]] = steps.after[data.rows[row]];
  follow();
  if (steps.turned === m) Object.assign(steps, {before: [...steps.after], count: steps.count + 1, turned: 0});
}

function pause() {
  clearInterval(player);
  player = 0;
  element('play').textContent = 'Play';
}

function play() {
  if (player) return pause();
  element('play').textContent = 'Pause';
  player = setInterval(() => {
    const rounds = state.method === 'ccd' && steps.count < 6 ? 1 : Math.ceil((steps.count + 1) / 20);
    for (let k = 0; k < rounds; k++) step(state.method !== 'ccd' || steps.count >= 6);
    refresh();
  }, 160);
}

// The row of the joint that CCD turns next, and what for: for thirty sweeps the last joints serve the direction.
function next() {
  const row = m - 1 - steps.turned, splits = directed() && steps.count + 1 < data.split;
  return {row, axis: directed() && (!splits || row >= m - (n - 3)), point: !splits || row < m - (n - 3)};
}

// What is told

const millimetres = (metres) => `${(metres * 1000).toFixed(Math.abs(metres) < 0.01 ? 1 : 0)} mm`;
const angle = (radians) => `${degrees(radians).toFixed(Math.abs(radians) < 0.17 ? 1 : 0)}°`;
const amount = (value, joint) => (joint.slides ? millimetres(value) : angle(value));

function told() {
  const {answer} = state;
  if (!state.method && (!answer || answer.status === SOLVED)) return ['good', 'Reached.', ''];
  if (state.method) {
    if (placed.position <= data.near[0] && placed.direction <= data.near[1]) return ['good', 'Reached.', ''];
    return ['near', 'On the way:', 'each step brings the tool nearer to the target.'];
  }
  const [head, text] = data.sentences[answer.cause], joint = data.joints[answer.joint];
  const value = joint ? amount(answer.amount, joint) : data.angles.includes(answer.cause) ? angle(answer.amount)
    : answer.cause < 2 ? millimetres(answer.amount) : answer.amount;
  const reached = answer.position <= data.near[0];
  return [reached ? 'near' : 'bad', `${head}:`, text.replace('{joint}', joint ? joint.name : '').replace('{}', value) + '.'];
}

function progress() {
  const unit = state.method === 'ccd' ? 'sweep' : 'step', count = `${steps.count} ${unit}${steps.count === 1 ? '' : 's'}`;
  if (steps.ended) return told()[0] === 'good' ? `Reached after ${count}.` : `Ended after ${count}: a further one gains nothing.`;
  if (state.method !== 'ccd') return `After ${count}.`;
  const {row, axis, point} = next(), name = data.names[row];
  const what = axis && point ? 'the tool towards position and direction' : axis ? "the tool's direction" : 'the tool towards the position';
  return `After ${count}${steps.turned ? ` and ${steps.turned} of ${m} joints` : ''}. Next, joint "${name}" turns ${what}.`;
}

function refresh() {
  placed = kernels.place(state.goal, state.q);
  const [kind, head, text] = told(), status = element('status');
  status.dataset.status = kind;
  status.querySelector('b').textContent = head;
  status.querySelector('span').textContent = text;
  status.querySelector('small').textContent = `position error ${millimetres(placed.position)}` +
    (directed() ? `, direction ${angle(placed.direction)}` : ', any direction');
  'xyz'.split('').forEach((axis, k) => {
    const input = element(axis);
    if (document.activeElement !== input) input.value = (1000 * state.goal[k]).toFixed(0);
  });
  data.joints.forEach((joint, i) => {
    const scale = joint.slides ? 1000 : 180 / Math.PI, beyond = state.q[i] < joint.low - 1e-6 || state.q[i] > joint.high + 1e-6;
    element(`joint-${i}`).value = state.q[i] * scale;
    element(`value-${i}`).textContent = `${(state.q[i] * scale).toFixed(joint.slides ? 0 : 1)}${joint.slides ? ' mm' : '°'}` +
      (beyond ? ', beyond its limit' : '');
  });
  element('steps').hidden = !state.method;
  if (state.method) {
    element('idea').textContent = IDEAS[state.method];
    element('progress').textContent = progress();
    element('joint-step').hidden = state.method !== 'ccd';
    element('step').textContent = state.method === 'ccd' ? 'Next sweep' : 'Next step';
    for (const id of ['joint-step', 'step', 'play']) element(id).disabled = steps.ended;
  }
  listSolutions();
  if (!waiting) requestAnimationFrame(paint);
  waiting = true;
}

// Where the direction cannot be had, the solutions are those with the direction that the tool has.
function listSolutions() {
  const shown = element('all').checked && !(dragging && !data.quick), list = element('solutions');
  if (!shown) {
    if (!element('all').checked) {
      state.ghosts = [];
      list.textContent = element('count').textContent = '';
    }
    return;
  }
  const goal = state.goal.slice(), turned = !state.method && state.answer && data.angles.includes(state.answer.cause);
  if (turned) goal.set(placed.axis, 3);
  const {rows, complete} = kernels.solutions(goal, state.q);
  state.ghosts = rows.filter((q) => q.some((value, i) => Math.abs(value - state.q[i]) > 1e-3))
    .map((q) => kernels.place(state.goal, q).poses);
  const focused = [...list.children].indexOf(document.activeElement);
  list.textContent = '';
  rows.forEach((q, k) => {
    make('button', {textContent: k + 1, title: `go to solution ${k + 1}`, onclick: () => {
      state.q = q;
      if (state.method) restart();
      refresh();
    }}, list);
  });
  if (focused >= 0 && list.children[focused]) list.children[focused].focus();
  const many = rows.length === 1 ? '1 solution' : `${rows.length || 'No'} solutions`;
  const none = !state.method && state.answer && state.answer.status === UNREACHABLE;
  const others = !rows.length ? none ? '' : ' found: there may be some' : complete ? `: there are no others${data.turns ? ', but for whole turns' : ''}`
    : data.endless[directed() ? 1 : 0] ? ': some of endlessly many' : ', found by search: there may be others';
  element('count').textContent = `${many} within the limits` + (turned ? ', with the direction that the tool has now' : '') +
    `${others}.`;
}

// The picture

const rgb = (name) => {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
  return [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255);
};
const HANDLES = {x: [0.86, 0.2, 0.2], y: [0.12, 0.6, 0.25], z: [0.16, 0.4, 0.9]};
const SIZE = 0.026 * reach, ARROW = 0.2 * reach, HANDLE = 0.13 * reach;
const ORANGE = [0.95, 0.45, 0.05], TEAL = [0.0, 0.55, 0.6], RED = [0.85, 0.15, 0.15];

function handles() {
  const ball = position(), found = {ball};
  if (directed()) found.turn = plus(ball, direction(), ARROW);
  'xyz'.split('').forEach((axis, k) => (found[axis] = plus(ball, [0, 1, 2].map((i) => (i === k ? HANDLE : 0)))));
  return found;
}

function shapesOf() {
  const links = [...Array(m + 1)].map(() => new Shape());
  for (const {link, kind, size, pose, colour, points, scale, faces} of data.shapes) {
    const shape = new Shape();
    if (kind === 'box') shape.box(size, colour);
    if (kind === 'cylinder') shape.cylinder(size[0], size[1], colour);
    if (kind === 'sphere') shape.sphere(size[0], colour);
    if (kind === 'mesh') {
      const words = (text) => new Int16Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
      const p = words(points), f = new Uint16Array(words(faces).buffer), point = (k) => times([p[3 * k], p[3 * k + 1], p[3 * k + 2]], scale);
      for (let k = 0; k < f.length; k += 3) shape.flat(point(f[k]), point(f[k + 1]), point(f[k + 2]), colour);
    }
    links[link].add(shape, pose);
  }
  const grid = new Shape(), half = Math.ceil(reach * 12) / 10, up = [0, 0, 1], white = [1, 1, 1];
  const line = (a, b) => grid.rows.push(...a, ...up, ...white, ...b, ...up, ...white);
  for (let k = -half; k <= half + 1e-9; k += 0.1) {
    line([k, -half, 0], [k, half, 0]);
    line([-half, k, 0], [half, k, 0]);
  }
  return {
    links: links.map((shape) => view.keep(shape)), grid: view.keep(grid, view.gl.LINES),
    ball: view.keep(new Shape().sphere(1, white)), tube: view.keep(new Shape().cylinder(1, 1, white)),
    cone: view.keep(new Shape().cylinder(1, 1, white, 0)),
  };
}

function arrow(from, to, radius, colour) {
  const along = unit(minus(to, from)), neck = plus(to, along, -5 * radius);
  view.draw(kept.tube, between(from, neck, radius), [...colour, 1]);
  view.draw(kept.cone, between(neck, to, 2.6 * radius), [...colour, 1]);
}

function paint() {
  waiting = false;
  const {points, tool, axis, poses} = placed, ball = position(), thin = 0.0045 * reach;
  view.begin(rgb('--scene'));
  view.draw(kept.grid, matrix([1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, -0.002 * reach]), [...rgb('--grid'), 1], 0);
  kept.links.forEach((link, k) => link.count && view.draw(link, matrix(poses[k])));
  const colour = rgb('--accent');
  for (const ghost of state.ghosts) {
    view.translucent(() => kept.links.forEach((link, k) => k && link.count && view.draw(link, matrix(ghost[k]), [...colour, 0.3])));
  }
  view.onTop();
  view.draw(kept.ball, at(tool, 0.014 * reach), [...TEAL, 1]);
  if (directed()) arrow(tool, plus(tool, axis, 0.14 * reach), thin, TEAL);
  if (placed.position > 1e-4) view.draw(kept.tube, between(tool, ball, 0.6 * thin), [...RED, 1]);
  if (state.method) {
    for (const point of steps.trace) view.draw(kept.ball, at(point, 0.007 * reach), [...RED, 1]);
    if (state.method === 'ccd' && !steps.ended) {
      const {row, point} = next(), from = points[row];
      view.draw(kept.ball, at(from, 0.025 * reach), [...RED, 1]);
      if (point) for (const to of [tool, ball]) view.draw(kept.tube, between(from, to, 0.5 * thin), [...(to === ball ? ORANGE : TEAL), 1]);
    }
  }
  for (const [name, tip] of Object.entries(handles())) {
    const bright = state.hover === name ? 1.5 : 1;
    if (name === 'ball') view.draw(kept.ball, at(ball, (bright > 1 ? 1.2 : 1) * SIZE), [...ORANGE, 1]);
    else if (name === 'turn') arrow(ball, tip, 1.5 * thin * bright, ORANGE);
    else arrow(ball, tip, 0.8 * thin * bright, HANDLES[name]);
  }
  if (!document.documentElement.dataset.drawn) document.documentElement.dataset.drawn = performance.now().toFixed(0);
}

// The mouse and fingers

let dragging = null;
const pointers = new Map();

function spot(event) {
  const box = element('canvas').getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function handleAt(place, radius) {
  let [best, least] = ['', radius];
  for (const [name, point] of Object.entries(handles())) {
    const [u, v] = view.project(point), gap = Math.hypot(u - place[0], v - place[1]) - (name === 'ball' ? 6 : 0);
    if (gap < least) [best, least] = [name, gap];
  }
  return best;
}

function dragTo(place) {
  const {name, grip} = dragging, ray = view.ray([place[0] - grip[0], place[1] - grip[1]]), eye = view.eye, ball = position();
  if (name === 'ball') { // in the plane through the ball that faces the eye
    const facing = view.axes[2];
    aim(plus(eye, ray, dot(minus(ball, eye), facing) / dot(ray, facing)));
  } else if (name === 'turn') { // on the sphere about the ball
    const out = minus(eye, ball), along = dot(out, ray), square = along * along - dot(out, out) + ARROW * ARROW;
    const root = Math.sqrt(Math.max(square, 0)), facing = dot(direction(), view.axes[2]) >= 0 ? -1 : 1;
    aim(ball, unit(plus(out, ray, -along + facing * root)));
  } else { // where the line through the ball comes nearest to the ray
    const line = [0, 1, 2].map((k) => ('xyz'[k] === name ? 1 : 0)), across = dot(line, ray), off = minus(eye, ball);
    const s = (dot(off, line) - across * dot(off, ray)) / Math.max(1 - across * across, 0.02);
    aim(plus(ball, line, Math.min(Math.max(s - HANDLE, -reach), reach)));
  }
}

function listen(canvas) {
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    const place = spot(event);
    pointers.set(event.pointerId, place);
    const name = pointers.size === 1 && event.button === 0 ? handleAt(place, event.pointerType === 'touch' ? 30 : 18) : '';
    const tip = name ? view.project(handles()[name]) : place;
    dragging = {name, grip: [place[0] - tip[0], place[1] - tip[1]], pans: event.button > 0 || event.shiftKey};
  };
  canvas.onpointermove = (event) => {
    const place = spot(event), last = pointers.get(event.pointerId);
    if (!last) {
      const hover = handleAt(place, 18);
      canvas.style.cursor = hover ? 'pointer' : '';
      if (hover !== state.hover) {
        state.hover = hover;
        refresh();
      }
      return;
    }
    pointers.set(event.pointerId, place);
    const [dx, dy] = [place[0] - last[0], place[1] - last[1]];
    if (pointers.size === 2) { // of each finger half of what both do
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, where]) => where);
      const gap = (where) => Math.hypot(where[0] - other[0], where[1] - other[1]) || 1;
      view.zoom(gap(last) / gap(place));
      view.pan(dx / 2, dy / 2);
    } else if (dragging && dragging.name) return dragTo(place);
    else if (dragging && dragging.pans) view.pan(dx, dy);
    else view.turn(dx, dy);
    refresh();
  };
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    pointers.delete(event.pointerId);
    dragging = null;
    refresh();
  };
  canvas.oncontextmenu = (event) => event.preventDefault();
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    view.zoom(Math.exp(Math.min(Math.max(event.deltaY, -200), 200) * 0.0015));
    refresh();
  }, {passive: false});
  new ResizeObserver(refresh).observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').onchange = refresh;
}

function fill() {
  element('name').textContent = data.title;
  element('note').textContent = data.note;
  'xyz'.split('').forEach((axis, k) => {
    const label = make('label', {textContent: axis}, element('position'));
    const input = make('input', {type: 'number', id: axis, step: 10}, label);
    input.onchange = () => Number.isFinite(input.valueAsNumber) &&
      aim(position().map((old, i) => (i === k ? input.valueAsNumber / 1000 : old)));
  });
  make('span', {className: 'soft', textContent: 'mm'}, element('position'));
  data.joints.forEach((joint, i) => {
    const scale = joint.slides ? 1000 : 180 / Math.PI, row = make('div', {className: 'joint'}, element('joints'));
    make('label', {htmlFor: `joint-${i}`, textContent: joint.name}, row);
    make('output', {id: `value-${i}`}, row);
    const slider = make('input', {type: 'range', id: `joint-${i}`, step: 'any', min: joint.low * scale, max: joint.high * scale}, row);
    slider.oninput = () => {
      state.q[i] = slider.valueAsNumber / scale;
      joined();
    };
  });
  element('free').onchange = () => aim(position(), element('free').checked ? [NaN, NaN, NaN] : placed.axis);
  element('down').onclick = () => {
    element('free').checked = false;
    aim(position(), [0, 0, -1]);
  };
  element('reset').onclick = begin;
  element('method').onchange = () => {
    state.method = element('method').value;
    pause();
    solve();
  };
  element('joint-step').onclick = () => { step(false); refresh(); };
  element('step').onclick = () => { step(true); refresh(); };
  element('play').onclick = () => { play(); refresh(); };
  element('again').onclick = () => { restart(steps.seed); refresh(); };
  element('limited').onchange = () => { restart(steps.seed); refresh(); };
  element('all').onchange = refresh;
}

function begin() {
  state.q = [...data.start];
  element('free').checked = false;
  const {tool, axis} = kernels.place(state.goal, state.q);
  aim(tool, axis);
}

async function main() {
  fill();
  try {
    view = new View(element('canvas'), reach);
    kernels = await Kernels.load(data);
  } catch (error) {
    element('help').textContent = `This page cannot show the arm: ${error.message}.`;
    return;
  }
  kept = shapesOf();
  listen(element('canvas'));
  begin();
}
main();
