// The colors of the images on the map, and the legend. Follows map.js in the same script.
const dark = matchMedia("(prefers-color-scheme: dark)");
// Colors that color-blind readers tell apart, after Petroff (arXiv:2107.02270).
const apart = ["#3f90da", "#ffa90e", "#bd1f01", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#92dadd"];
const hue = (n) => {
  if (n < 0) return "#8a9099";
  const lightness = (dark.matches ? 57 : 42) + 12 * (Math.floor(n / 8) % 2);
  return apart[n] ?? `hsl(${(n * 137.5 + 210) % 360} 75% ${lightness}%)`;
};
const heat = (value) => `hsl(${240 - (240 * value) / 255} 80% 50%)`;

const legend = () => {
  const place = read("map-legend");
  place.replaceChildren();
  const add = (color, text) => {
    const item = element("span", "", place);
    element("i", "", item).style.background = color;
    item.append(text);
  };
  const numbers = Math.max(-1, ...maps.map((map) => map.cluster?.reduce((most, one) => Math.max(most, one), -1) ?? -1)) + 1;
  const groups = {
    label: images.classes,
    folder: images.folders.map((name) => name || "(top)"),
    cluster: Array.from({ length: numbers }, (_, n) => `cluster ${n}`),
  }[choice.color];
  if (choice.color === "score") [[0, "among others"], [128, "halfway"], [255, "outlier"]].forEach(([n, t]) => add(heat(n), t));
  else if (groups) {
    groups.slice(0, 24).forEach((name, n) => add(hue(n), name));
    if (groups.length > 24) element("span", `and ${groups.length - 24} more`, place);
  }
};
