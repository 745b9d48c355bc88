// SPDX-License-Identifier: Apache-2.0
// A view of lit triangles in WebGL: z is up, lengths are in metres, matrices are columns as WebGL takes them.
'use strict';

const plus = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const minus = (a, b) => plus(a, b, -1);
const times = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const norm = (a) => Math.sqrt(dot(a, a));
const unit = (a) => times(a, 1 / (norm(a) || 1));

const VERTEX = `
attribute vec3 place, normal, colour;
uniform mat4 model, camera;
varying vec3 n, c;
void main() {
  n = mat3(model) * normal;
  c = colour;
  gl_Position = camera * (model * vec4(place, 1.0));
}`;
const FRAGMENT = `
precision mediump float;
varying vec3 n, c;
uniform vec4 tint;
uniform vec3 light;
uniform float lit;
void main() {
  vec3 base = c * tint.rgb;
  float l = dot(normalize(n), light);
  float shade = 0.62 + 0.38 * l + 0.12 * max(normalize(n).z, 0.0);
  gl_FragColor = vec4(mix(base, base * shade, lit), 1.0) * tint.a;
}`;

// Triangles as rows of place, normal and colour.
class Shape {
  rows = [];
  triangle(places, normals, colour) {
    places.forEach((place, k) => this.rows.push(...place, ...normals[k], ...colour));
  }
  flat(a, b, c, colour) {
    const normal = unit(cross(minus(b, a), minus(c, a)));
    this.triangle([a, b, c], [normal, normal, normal], colour);
  }
  // A surface of revolution about z: outline is a list of [radius, z, normal's radial part, normal's z].
  turned(outline, colour, sides = 32) {
    const ring = (k) => [Math.cos((2 * Math.PI * k) / sides), Math.sin((2 * Math.PI * k) / sides)];
    for (let k = 0; k < sides; k++) {
      for (let j = 0; j + 1 < outline.length; j++) {
        const at = (row, [c, s]) => [[row[0] * c, row[0] * s, row[1]], [row[2] * c, row[2] * s, row[3]]];
        const [a, b] = [at(outline[j], ring(k)), at(outline[j], ring(k + 1))];
        const [d, e] = [at(outline[j + 1], ring(k)), at(outline[j + 1], ring(k + 1))];
        this.triangle([a[0], b[0], e[0]], [a[1], b[1], e[1]], colour);
        this.triangle([a[0], e[0], d[0]], [a[1], e[1], d[1]], colour);
      }
    }
    return this;
  }
  cylinder(radius, length, colour, top = radius) {
    const h = length / 2;
    return this.turned([[0, -h, 0, -1], [radius, -h, 0, -1]], colour)
      .turned([[radius, -h, 1, (radius - top) / length], [top, h, 1, (radius - top) / length]], colour)
      .turned([[top, h, 0, 1], [0, h, 0, 1]], colour);
  }
  sphere(radius, colour) {
    const outline = [];
    for (let k = 0; k <= 16; k++) {
      const [c, s] = [-Math.cos((Math.PI * k) / 16), Math.sin((Math.PI * k) / 16)];
      outline.push([radius * s, radius * c, s, c]);
    }
    return this.turned(outline, colour);
  }
  box([x, y, z], colour) {
    const corner = (k) => [(k & 1 ? x : -x) / 2, (k & 2 ? y : -y) / 2, (k & 4 ? z : -z) / 2];
    for (const [a, b, c, d] of [[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1], [4, 5, 7, 6]]) {
      this.flat(corner(a), corner(b), corner(c), colour);
      this.flat(corner(a), corner(c), corner(d), colour);
    }
    return this;
  }
  // Append another shape at a pose of 12 numbers: three columns, then the translation.
  add(other, pose = [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]) {
    const turn = (v) => plus(plus(times(pose.slice(0, 3), v[0]), pose.slice(3, 6), v[1]), pose.slice(6, 9), v[2]);
    for (let k = 0; k < other.rows.length; k += 9) {
      const row = other.rows.slice(k, k + 9);
      this.rows.push(...plus(turn(row.slice(0, 3)), pose.slice(9)), ...turn(row.slice(3, 6)), ...row.slice(6));
    }
    return this;
  }
}

const matrix = (pose) => [...pose.slice(0, 3), 0, ...pose.slice(3, 6), 0, ...pose.slice(6, 9), 0, ...pose.slice(9), 1];
const product = (a, b) => {
  const out = new Array(16).fill(0);
  for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) for (let k = 0; k < 4; k++) out[4 * j + i] += a[4 * k + i] * b[4 * j + k];
  return out;
};
// The matrix that puts a shape along z, -1/2 to 1/2, between two points, with a radius.
const between = (a, b, radius) => {
  const along = minus(b, a), z = unit(along);
  const x = unit(cross(Math.abs(z[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0], z)), y = cross(z, x);
  return matrix([...times(x, radius), ...times(y, radius), ...along, ...times(plus(a, b), 0.5)]);
};
const at = (place, size) => matrix([size, 0, 0, 0, size, 0, 0, 0, size, ...place]);

class View {
  yaw = -0.9; pitch = 0.38; angle = (36 * Math.PI) / 180;

  constructor(canvas, reach) {
    const gl = canvas.getContext('webgl', {antialias: true, premultipliedAlpha: true});
    if (!gl) throw new Error('this browser shows no WebGL');
    Object.assign(this, {canvas, gl, reach, distance: 2.4 * reach, centre: [0.16 * reach, 0, 0.3 * reach]});
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    ['place', 'normal', 'colour'].forEach((name, k) => gl.bindAttribLocation(program, k, name));
    gl.linkProgram(program);
    gl.useProgram(program);
    this.uniform = Object.fromEntries(
      ['model', 'camera', 'tint', 'light', 'lit'].map((name) => [name, gl.getUniformLocation(program, name)]));
    [0, 1, 2].forEach((k) => gl.enableVertexAttribArray(k));
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.LEQUAL);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  // Put a shape into the memory of the graphics processor.
  keep(shape, kind = this.gl.TRIANGLES) {
    const gl = this.gl, buffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(shape.rows), gl.STATIC_DRAW);
    return {buffer, count: shape.rows.length / 9, kind};
  }

  get eye() {
    const [c, s] = [Math.cos(this.pitch), Math.sin(this.pitch)];
    return plus(this.centre, [c * Math.cos(this.yaw), c * Math.sin(this.yaw), s], this.distance);
  }

  // The axes of the camera: to the right, up, and towards the eye.
  get axes() {
    const z = unit(minus(this.eye, this.centre)), x = unit(cross([0, 0, 1], z));
    return [x, cross(z, x), z];
  }

  begin(background) {
    const {gl, canvas} = this, ratio = Math.min(devicePixelRatio || 1, 2);
    const [w, h] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
    if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, {width: w, height: h});
    gl.viewport(0, 0, w, h);
    gl.clearColor(...background, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const [x, y, z] = this.axes, eye = this.eye, f = this.focal(w, h);
    const look = [x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1];
    const [near, far] = [0.02 * this.distance, 20 * this.distance];
    const lens = [(f * h) / w, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, (2 * far * near) / (near - far), 0];
    gl.uniformMatrix4fv(this.uniform.camera, false, product(lens, look));
    gl.uniform3fv(this.uniform.light, unit(plus(plus(z, [0, 0, 0.9]), x, 0.5)));
  }

  // The focal length in halves of the height; a narrow window sees as much sideways as it is high.
  focal(w, h) {
    return Math.min(1, w / h) / Math.tan(this.angle / 2);
  }

  draw(kept, model, tint = [1, 1, 1, 1], lit = 1) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, kept.buffer);
    [0, 1, 2].forEach((k) => gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 36, 12 * k));
    gl.uniformMatrix4fv(this.uniform.model, false, model);
    gl.uniform4fv(this.uniform.tint, tint);
    gl.uniform1f(this.uniform.lit, lit);
    gl.drawArrays(kept.kind, 0, kept.count);
  }

  // Draw what is called twice, the depth first, so that of translucent shapes the outer surface alone is seen.
  translucent(drawn) {
    const gl = this.gl;
    gl.enable(gl.POLYGON_OFFSET_FILL); // behind what is in the same place
    gl.polygonOffset(2, 4);
    gl.colorMask(false, false, false, false);
    drawn();
    gl.colorMask(true, true, true, true);
    gl.enable(gl.BLEND);
    drawn();
    gl.disable(gl.BLEND);
    gl.disable(gl.POLYGON_OFFSET_FILL);
  }

  // What is drawn from now on covers everything before.
  onTop() {
    this.gl.clear(this.gl.DEPTH_BUFFER_BIT);
  }

  // Where a point is in the canvas [CSS pixels].
  project(point) {
    const [x, y, z] = this.axes, away = minus(point, this.eye), w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    const scale = (this.focal(w, h) * h) / 2 / -dot(z, away);
    return [w / 2 + scale * dot(x, away), h / 2 - scale * dot(y, away)];
  }

  // The direction in which the eye sees a place in the canvas [CSS pixels].
  ray([u, v]) {
    const [x, y, z] = this.axes, w = this.canvas.clientWidth, h = this.canvas.clientHeight, s = 2 / (this.focal(w, h) * h);
    return unit(plus(plus(times(x, s * (u - w / 2)), y, -s * (v - h / 2)), z, -1));
  }

  turn(dx, dy) {
    this.yaw -= dx * 0.008;
    this.pitch = Math.min(Math.max(this.pitch + dy * 0.008, -1.4), 1.5);
  }

  pan(dx, dy) {
    const [x, y] = this.axes, h = this.canvas.clientHeight, s = (2 * this.distance) / (this.focal(this.canvas.clientWidth, h) * h);
    this.centre = plus(plus(this.centre, x, -s * dx), y, s * dy);
  }

  zoom(factor) {
    this.distance = Math.min(Math.max(this.distance * factor, 0.3 * this.reach), 20 * this.reach);
  }
}
