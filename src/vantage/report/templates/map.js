"use strict";
// The maps: one canvas for each run, drawn from the numbers that vantage.report.map_data packs.
const read = (id) => document.getElementById(id);
const data = JSON.parse(read("map-data").textContent);
const numbers = (text, Kind) => new Kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const { images, sprite } = data;
const count = images.count;
const folder = numbers(images.folder, Uint16Array);
const label = images.label ? numbers(images.label, Int32Array) : null;
const nameOf = (i) => (images.folders[folder[i]] ? images.folders[folder[i]] + "/" : "") + images.names[i];
const picture = read("map-sprite");
const choice = { color: label ? "label" : images.folders.length > 1 ? "folder" : "none", dots: !sprite.side };
const maps = [];
const chance = (i) => Math.imul(i + 1, 2654435761) >>> 0;
const order = Uint32Array.from({ length: count }, (_, i) => i).sort((a, b) => chance(a) - chance(b)); // else the last class hides the others

const thumbnailOf = (i) => (sprite.step && i % sprite.step === 0 ? i / sprite.step : -1);
const paint = (pen, i, x, y, side) => {
  const n = thumbnailOf(i);
  if (n < 0) return false;
  const from = [(n % sprite.columns) * sprite.side, Math.floor(n / sprite.columns) * sprite.side];
  pen.drawImage(picture, ...from, sprite.side, sprite.side, x, y, side, side);
  return true;
};

class ImageMap {
  constructor(figure, run) {
    Object.assign(this, { figure, run, canvas: figure.querySelector("canvas"), panel: figure.querySelector(".panel") });
    this.place = numbers(run.place, Uint16Array);
    this.near = numbers(run.near, Uint16Array);
    this.cosine = numbers(run.cosine, Uint8Array);
    this.score = numbers(run.score, Uint8Array);
    this.cluster = run.cluster ? numbers(run.cluster, Int32Array) : null;
    this.selected = -1;
    this.fit();
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  fit() {
    const rim = (this.sideAt(1) + 10) / Math.min(...this.size); // so that no thumbnail at the edge is cut
    Object.assign(this, { x: 0.5, y: 0.5, zoom: Math.min(0.94, Math.max(0.5, 1 - rim)) });
    this.redraw();
  }

  get size() {
    return [this.canvas.clientWidth, this.canvas.clientHeight];
  }

  spot(i) {
    const [width, height] = this.size;
    const scale = this.zoom * Math.min(width, height);
    const from = (value, center, room) => (value / 65535 - center) * scale + room / 2;
    return [from(this.place[2 * i], this.x, width), from(this.place[2 * i + 1], this.y, height)];
  }

  colorOf(i) {
    if (choice.color === "score") return heat(this.score[i]);
    if (choice.color === "label" && label) return hue(label[i]);
    if (choice.color === "cluster" && this.cluster) return hue(this.cluster[i]);
    return choice.color === "folder" ? hue(folder[i]) : hue(-1);
  }

  roomAt(zoom) {
    return (Math.min(...this.size) / Math.sqrt(count)) * Math.pow(zoom, 0.7);
  }

  sideAt(zoom) {
    return choice.dots ? 0 : Math.max(Math.min(sprite.side, 32), Math.min(96, 1.1 * this.roomAt(zoom)));
  }

  redraw() {
    if (!this.waiting) this.waiting = requestAnimationFrame(() => ((this.waiting = 0), this.draw()));
  }

  draw() {
    const [width, height] = this.size;
    const ratio = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const side = this.sideAt(this.zoom);
    const dot = Math.max(1.5, Math.min(6, 0.25 * this.roomAt(this.zoom)));
    this.pictures = this.withRoom(side);
    for (const i of order) this.drawOne(pen, i, 0, dot, width, height);
    for (const i of this.pictures.images) this.drawOne(pen, i, side, dot, width, height);
    if (this.selected >= 0) {
      const [x, y] = this.spot(this.selected);
      const half = (thumbnailOf(this.selected) < 0 || !side ? 2 * dot : side / 2) + 3;
      this.drawOne(pen, this.selected, side, 2 * dot, width, height);
      pen.strokeStyle = getComputedStyle(this.canvas).color;
      pen.lineWidth = 3;
      pen.strokeRect(x - half, y - half, 2 * half, 2 * half);
      this.canvas.dataset.spot = `${Math.round(x)} ${Math.round(y)}`;
    }
  }

  drawOne(pen, i, side, dot, width, height) {
    const [x, y] = this.spot(i);
    if (x < -side || y < -side || x > width + side || y > height + side) return;
    pen.fillStyle = this.colorOf(i);
    if (side && thumbnailOf(i) >= 0) {
      pen.fillRect(x - side / 2 - 2, y - side / 2 - 2, side + 4, side + 4);
      paint(pen, i, x - side / 2, y - side / 2, side);
    } else {
      pen.beginPath();
      pen.arc(x, y, dot, 0, 7);
      pen.fill();
    }
  }

  // Images whose thumbnails do not overlap; zooming in makes room for more.
  withRoom(side) {
    const gap = (side + 6) / (this.zoom * Math.min(...this.size));
    if (this.pictures && this.pictures.gap === gap && this.pictures.side === side) return this.pictures;
    const cells = new Map(), images = [];
    const cellOf = (x, y) => Math.floor(x) + 65536 * Math.floor(y);
    const isFree = (x, y) => {
      for (let n = 0; n < 9; n++) {
        const other = cells.get(cellOf(x + (n % 3) - 1, y + Math.floor(n / 3) - 1));
        if (other && Math.abs(other[0] - x) < 1 && Math.abs(other[1] - y) < 1) return false;
      }
      return true;
    };
    for (const i of side ? order : []) {
      const [x, y] = [this.place[2 * i] / 65535 / gap, this.place[2 * i + 1] / 65535 / gap];
      if (thumbnailOf(i) < 0 || !isFree(x, y)) continue;
      cells.set(cellOf(x, y), [x, y]);
      images.push(i);
    }
    return { images, side, gap };
  }

  under(x, y) {
    const { images, side } = this.pictures;
    const isUnder = (i) => this.spot(i).every((at, n) => Math.abs(at - [x, y][n]) <= side / 2);
    return images.find(isUnder) ?? this.nearestTo(x, y);
  }

  nearestTo(x, y, allowed = () => true) {
    let best = -1, least = Infinity;
    for (let i = 0; i < count; i++) {
      const [px, py] = this.spot(i);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least && allowed(px - x, py - y, i)) [best, least] = [i, distance];
    }
    return least < 30 ** 2 || allowed.length ? best : -1;
  }

  zoomBy(factor, x = this.size[0] / 2, y = this.size[1] / 2) {
    const [width, height] = this.size;
    const scale = Math.min(width, height);
    const zoom = Math.max(0.5, Math.min(60, this.zoom * factor));
    this.x += ((x - width / 2) / scale) * (1 / this.zoom - 1 / zoom);
    this.y += ((y - height / 2) / scale) * (1 / this.zoom - 1 / zoom);
    this.zoom = zoom;
    this.redraw();
  }

  pan(dx, dy) {
    const scale = this.zoom * Math.min(...this.size);
    this.x -= dx / scale;
    this.y -= dy / scale;
    this.redraw();
  }

  show(i) {
    this.selected = i;
    const [x, y] = i < 0 ? [0, 0] : this.spot(i);
    const [width, height] = this.size;
    if (i >= 0 && (x < 0 || y < 0 || x > width || y > height)) this.pan(width / 2 - x, height / 2 - y);
    this.redraw();
    this.panel.replaceChildren();
    if (i < 0) return;
    const about = element("p", "", this.panel);
    element("strong", nameOf(i), about);
    const facts = [label && label[i] >= 0 ? images.classes[label[i]] ?? `class ${label[i]}` : ""];
    facts.push(this.cluster && this.cluster[i] >= 0 ? `cluster ${this.cluster[i]}` : "");
    facts.push(this.score[i] === 255 ? "an outlier" : "");
    about.append(" " + facts.filter(Boolean).join(", "));
    element("p", "Nearest in feature space:", this.panel).className = "note";
    const list = element("ul", "", this.panel);
    list.className = "near";
    for (let k = 0; k < this.run.nearest; k++) {
      const at = i * this.run.nearest + k;
      entry(list, this.near[at], ((this.cosine[at] - 100) / 100).toFixed(2));
    }
  }

  listen() {
    const { canvas } = this;
    const held = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, [event.offsetX, event.offsetY]);
      if (held.size === 1) moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = held.get(event.pointerId);
      if (!before) return;
      const now = [event.offsetX, event.offsetY];
      const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
      moved += Math.abs(dx) + Math.abs(dy);
      if (held.size === 1) this.pan(dx, dy);
      else {
        const other = [...held].find(([id]) => id !== event.pointerId)[1];
        const gap = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]) || 1;
        this.zoomBy(gap(now) / gap(before), ...other);
      }
      held.set(event.pointerId, now);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (held.delete(event.pointerId) && moved < 6) select(this.under(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointercancel", (event) => held.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const button of this.figure.querySelectorAll("button[data-zoom]")) {
      button.addEventListener("click", () => (+button.dataset.zoom ? this.zoomBy(+button.dataset.zoom) : this.fit()));
    }
  }

  key(event) {
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const way = ways[event.key];
    if (way && !event.shiftKey) {
      const [x, y] = this.selected < 0 ? this.size.map((room) => room / 2) : this.spot(this.selected);
      const ahead = (dx, dy, i) => {
        const along = dx * way[0] + dy * way[1];
        return i !== this.selected && (this.selected < 0 || (along > 0 && along >= Math.abs(dx * way[1] + dy * way[0])));
      };
      const next = this.nearestTo(x, y, ahead);
      if (next >= 0) select(next);
    } else if (way) this.pan(-60 * way[0], -60 * way[1]);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.4);
    else if (event.key === "-") this.zoomBy(1 / 1.4);
    else if (event.key === "0") this.fit();
    else if (event.key === "Escape") select(-1);
    else return;
    event.preventDefault();
  }
}
