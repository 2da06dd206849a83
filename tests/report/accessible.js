// What a reader with a keyboard, a screen reader or weak eyes would stumble over on this page, as a list of sentences.
const faults = [];
const say = (one, text) => faults.push(`${text}: ${one.outerHTML.slice(0, 90)}`);
const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const all = (names) => [...document.querySelectorAll(names)];

// headings: one of the first level, and no level left out
let level = 0;
for (const one of all("h1, h2, h3, h4, h5, h6").filter(seen)) {
  const next = +one.tagName[1];
  if (next > level + 1) say(one, `a heading of level ${next} after one of level ${level}`);
  if (!one.textContent.trim()) say(one, "an empty heading");
  level = next;
}
if (all("h1").length !== 1) faults.push(`${all("h1").length} headings of the first level`);

// pictures: words for each that says something
for (const one of all("img")) if (!one.hasAttribute("alt") || (seen(one) && !one.alt.trim())) say(one, "a picture without words");
for (const one of all("svg"))
  if (one.getAttribute("aria-hidden") !== "true" && !(one.getAttribute("role") === "img" && one.querySelector(":scope > title")))
    say(one, "a drawing without words");

// controls: a name for each, and no id twice
const controls = "a[href], button, input, select, summary, [tabindex]";
const named = (one) =>
  one.getAttribute("aria-label") || [...(one.labels || [])].map((label) => label.textContent).join("") || one.textContent;
for (const one of all(controls)) {
  const own = one.matches("input, select") ? one.getAttribute("aria-label") || (one.labels || []).length : true;
  if (!own || !named(one).trim()) say(one, "a control without a name");
  if (one.tabIndex > 0) say(one, "an order of its own");
}
const ids = all("[id]").map((one) => one.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`the id ${id} twice`);
for (const one of all("th")) if (!one.scope) say(one, "a head of a table without a scope");
for (const one of ["html[lang]", "head > title", "main", "nav[aria-label]", "header"])
  if (all(one).length !== 1) faults.push(`${all(one).length} of ${one}`);

// letters: contrast with what is behind them, and size
const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (color) => {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = color;
  pen.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => top.slice(0, 3).map((value, i) => value * top[3] + below[i] * (1 - top[3]));
const ground = (one) => {
  const layers = [];
  for (let at = one; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
  const paper = rgba(getComputedStyle(document.body).backgroundColor);
  return layers.reverse().reduce((below, layer) => over(layer, below), paper);
};
const light = (color) => {
  const [r, g, b] = color.map((value) => value / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const one = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || one.closest("script, style, title, option") || !seen(one)) continue;
  const style = getComputedStyle(one);
  const drawing = one.closest("svg");
  const below = ground(one);
  const ink = over(rgba(drawing ? style.fill : style.color), below);
  const [high, low] = [light(ink), light(below)].sort((a, b) => b - a);
  if ((high + 0.05) / (low + 0.05) < 4.5) say(one, `a contrast of ${((high + 0.05) / (low + 0.05)).toFixed(2)}`);
  const size = parseFloat(style.fontSize) * (drawing ? drawing.clientWidth / drawing.viewBox.baseVal.width : 1);
  if (size < 10) say(one, `letters of ${size.toFixed(1)} pixels`);
}
return faults;
