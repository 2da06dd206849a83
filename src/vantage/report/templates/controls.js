// Around the maps: selection, the list of images and the controls. Follows map.js in the same script.
const element = (tag, text, parent) => {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};
const select = (i) => maps.forEach((map) => map.show(i));

const entry = (list, i, note) => {
  const button = element("button", "", element("li", "", list));
  button.type = "button";
  button.dataset.image = i;
  const small = element("canvas", "", button);
  Object.assign(small, { width: 48, height: 48 });
  small.setAttribute("aria-hidden", "true");
  const pen = small.getContext("2d");
  if (!paint(pen, i, 0, 0, 48)) {
    pen.fillStyle = hue(label ? label[i] : folder[i]);
    pen.arc(24, 24, 8, 0, 7);
    pen.fill();
  }
  element("span", nameOf(i), button);
  if (note) element("span", note, button);
  button.addEventListener("click", () => select(i));
};

const pages = { at: 0, size: 24, found: Array.from({ length: count }, (_, i) => i) };
const turn = (to) => {
  const last = Math.max(0, Math.ceil(pages.found.length / pages.size) - 1);
  pages.at = Math.max(0, Math.min(last, to));
  const list = read("map-list");
  list.replaceChildren();
  const start = pages.at * pages.size;
  pages.found.slice(start, start + pages.size).forEach((i) => entry(list, i, ""));
  read("map-page").textContent = `${pages.found.length ? start + 1 : 0} to ${Math.min(start + pages.size, pages.found.length)} of ${pages.found.length}`;
};

const begin = () => {
  data.runs.forEach((run) => {
    const figure = read(`map-${run.number}`);
    figure.querySelector("img").hidden = true;
    for (const part of figure.querySelectorAll(".stage, .panel")) part.hidden = false;
    maps.push(new ImageMap(figure, run));
  });
  for (const id of ["map-controls", "map-images", "map-note"]) read(id).hidden = false;
  read("map-still").hidden = true;
  const color = read("map-color");
  color.value = choice.color;
  const recolor = () => (legend(), maps.forEach((map) => map.redraw()));
  color.addEventListener("change", () => ((choice.color = color.value), recolor()));
  dark.addEventListener("change", recolor);
  const dots = read("map-dots");
  dots.checked = choice.dots;
  dots.addEventListener("change", () => ((choice.dots = dots.checked), maps.forEach((map) => map.redraw())));
  read("map-search").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase();
    pages.found = Array.from({ length: count }, (_, i) => i).filter((i) => nameOf(i).toLowerCase().includes(words));
    turn(0);
  });
  read("map-before").addEventListener("click", () => turn(pages.at - 1));
  read("map-after").addEventListener("click", () => turn(pages.at + 1));
  legend();
  turn(0);
  document.body.dataset.map = "ready";
};
if (picture) picture.decode().then(begin);
else begin();
