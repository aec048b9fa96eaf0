/* Contrast as in WCAG 2.1, of an element's colour and the nearest painted one behind it. */
(node) => {
  const channels = (text) => text.match(/[\d.]+/g).map(Number);
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => rgb.slice(0, 3).reduce((sum, c, i) => sum + linear(c / 255) * [0.2126, 0.7152, 0.0722][i], 0);
  let behind = node;
  while (behind && (channels(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
  const paper = behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)";
  const [a, b] = [light(channels(getComputedStyle(node).color)), light(channels(paper))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}
