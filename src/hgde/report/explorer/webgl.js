// Drawing on a graphics card: the isometry is applied to points and edges in the vertex shader.

const GLSL_COMMON = `#version 300 es
uniform vec4 isometry;
uniform vec3 view; // radius and centre of the disk in clip coordinates, divided by the canvas's half sizes below
uniform vec2 aspect;
vec2 times(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
vec2 moved(vec2 z) {
  vec2 n = times(isometry.xy, z) + isometry.zw;
  vec2 d = times(vec2(isometry.z, -isometry.w), z) + vec2(isometry.x, -isometry.y);
  return vec2(n.x * d.x + n.y * d.y, n.y * d.x - n.x * d.y) / dot(d, d);
}
vec4 placed(vec2 z) { return vec4((view.x * z + view.yz) * aspect, 0.0, 1.0); }
`;
const GLSL_POINT = `${GLSL_COMMON}
in vec2 z; in vec4 colour; uniform float size; out vec4 shade;
void main() { gl_Position = placed(moved(z)); gl_PointSize = size; shade = colour; }`;
const GLSL_DISC = `#version 300 es
precision mediump float;
in vec4 shade; uniform highp float size; out vec4 result;
void main() {
  float cover = clamp(0.5 * size - length(gl_PointCoord - 0.5) * size, 0.0, 1.0) * shade.a;
  result = vec4(shade.rgb * cover, cover);
}`;
// A geodesic is a chord of Klein's model; see geodesic() in disk.js.
const GLSL_EDGE = `${GLSL_COMMON}
in uvec2 ends; uniform highp sampler2D places; uniform int width; uniform float pieces;
vec2 place(uint i) { return moved(texelFetch(places, ivec2(int(i) % width, int(i) / width), 0).xy); }
void main() {
  vec2 a = place(ends.x), b = place(ends.y);
  float s = 0.5 - 0.5 * cos(3.14159265 * float(gl_VertexID) / pieces);
  vec2 k = mix(a * (2.0 / (1.0 + dot(a, a))), b * (2.0 / (1.0 + dot(b, b))), s);
  gl_Position = placed(k / (1.0 + sqrt(max(0.0, 1.0 - dot(k, k)))));
}`;
const GLSL_INK = `#version 300 es
precision mediump float;
uniform vec4 ink; out vec4 result;
void main() { result = vec4(ink.rgb * ink.a, ink.a); }`;

/** Browsers do not always admit that they emulate; the name of the renderer does. */
function isEmulated(gl) {
  const extension = gl.getExtension("WEBGL_debug_renderer_info");
  const name = extension ? gl.getParameter(extension.UNMASKED_RENDERER_WEBGL) : gl.getParameter(gl.RENDERER);
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

class WebglRenderer {
  /** Throws where there is no WebGL 2, or only an emulation while `emulated` is false. */
  constructor(canvas, emulated) {
    const gl = canvas.getContext("webgl2", { antialias: true, failIfMajorPerformanceCaveat: !emulated });
    if (!gl || (!emulated && isEmulated(gl))) throw new Error("no WebGL 2 on a graphics card");
    this.canvas = canvas;
    this.gl = gl;
    this.name = "webgl2";
    this.maxRatio = 3;
    this.budget = 500_000; // pieces of edges per moving frame; follows the measured time between frames
    this.lastFrame = 0;
    this.pointProgram = this.program(GLSL_POINT, GLSL_DISC);
    this.edgeProgram = this.program(GLSL_EDGE, GLSL_INK);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  program(vertex, fragment) {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const uniform = (name) => gl.getUniformLocation(program, name);
    return { program, uniform, attribute: (name) => gl.getAttribLocation(program, name) };
  }

  setData(count, edges) {
    const { gl } = this;
    this.count = count;
    this.edgeCount = edges.length / 2;
    this.textureWidth = Math.min(2048, Math.max(1, count));
    this.textureHeight = Math.max(1, Math.ceil(count / this.textureWidth));
    this.texels = new Float32Array(2 * this.textureWidth * this.textureHeight);
    this.positionBuffer = gl.createBuffer();
    this.colourBuffer = gl.createBuffer();
    this.edgeBuffer = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.edgeBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, edges, gl.STATIC_DRAW);
    this.texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    for (const side of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, side, gl.NEAREST);
    this.uploaded = null;
  }

  setColours(colours) {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.colourBuffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, colours, this.gl.DYNAMIC_DRAW);
  }

  resize(width, height) {
    this.canvas.width = width;
    this.canvas.height = height;
  }

  /** Moves the points in double precision and sends them; frames until the next call only send what came after. */
  upload(positions, transform) {
    const { gl } = this;
    applyAll(transform, positions, this.texels.subarray(0, 2 * this.count));
    gl.bindBuffer(gl.ARRAY_BUFFER, this.positionBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, this.texels, gl.DYNAMIC_DRAW);
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    gl.texImage2D(
      gl.TEXTURE_2D, 0, gl.RG32F, this.textureWidth, this.textureHeight, 0, gl.RG, gl.FLOAT, this.texels,
    );
    this.uploaded = { transform };
  }

  /** The points themselves have changed. */
  invalidate() {
    this.uploaded = null;
  }

  draw(positions, transform, view, style, moving) {
    const { gl, canvas } = this;
    if (!moving || !this.uploaded) this.upload(positions, transform);
    const relative = compose(transform, inverse(this.uploaded.transform));
    const now = performance.now();
    if (moving && now - this.lastFrame < 200) {
      const factor = now - this.lastFrame > 25 ? 0.8 : 1.1;
      this.budget = Math.max(5_000, Math.min(2e7, this.budget * factor));
    }
    this.lastFrame = now;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const place = ({ program, uniform }) => {
      gl.useProgram(program);
      gl.uniform4fv(uniform("isometry"), relative);
      gl.uniform3f(uniform("view"), view.radius, view.x - canvas.width / 2, canvas.height / 2 - view.y);
      gl.uniform2f(uniform("aspect"), 2 / canvas.width, 2 / canvas.height);
    };
    place(this.edgeProgram);
    this.drawEdges(style, moving);
    place(this.pointProgram);
    this.drawPoints(style);
  }

  drawEdges(style, moving) {
    const { gl } = this;
    const { uniform, attribute } = this.edgeProgram;
    if (!this.edgeCount) return;
    let pieces = this.edgeCount > 50_000 ? 8 : 24;
    let shown = this.edgeCount;
    if (moving && shown * pieces > this.budget) {
      pieces = 4;
      shown = Math.min(shown, Math.ceil(this.budget / pieces));
    }
    gl.uniform1i(uniform("places"), 0);
    gl.uniform1i(uniform("width"), this.textureWidth);
    gl.uniform1f(uniform("pieces"), pieces);
    gl.uniform4f(uniform("ink"), ...style.edge.map((v) => v / 255), Math.min(0.5, 0.4 / style.edgeInk));
    const ends = attribute("ends");
    gl.bindBuffer(gl.ARRAY_BUFFER, this.edgeBuffer);
    gl.enableVertexAttribArray(ends);
    gl.vertexAttribIPointer(ends, 2, gl.UNSIGNED_INT, 0, 0);
    gl.vertexAttribDivisor(ends, 1);
    gl.drawArraysInstanced(gl.LINE_STRIP, 0, pieces + 1, shown);
    gl.vertexAttribDivisor(ends, 0);
    gl.disableVertexAttribArray(ends);
  }

  drawPoints(style) {
    const { gl } = this;
    const { uniform, attribute } = this.pointProgram;
    gl.uniform1f(uniform("size"), 2 * style.pointRadius + 1);
    const given = [
      ["z", this.positionBuffer, 2, gl.FLOAT, false],
      ["colour", this.colourBuffer, 4, gl.UNSIGNED_BYTE, true],
    ];
    for (const [name, buffer, parts, type, scaled] of given) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(attribute(name));
      gl.vertexAttribPointer(attribute(name), parts, type, scaled, 0, 0);
    }
    gl.drawArrays(gl.POINTS, 0, this.count);
    for (const [name] of given) gl.disableVertexAttribArray(attribute(name));
  }

  continueEdges() {
    return true;
  }
}
