// A chart of the last minutes. Without uPlot (an installation that was built without it) only the legend with the latest values is left.

export const element = (name, text, parent, className) => {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
};

export const short = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  for (const [scale, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]])
    if (Math.abs(value) >= 10 * scale || (scale > 1e3 && Math.abs(value) >= scale)) return (value / scale).toFixed(Math.abs(value) >= 100 * scale ? 0 : 1) + unit;
  return Number.isInteger(value) ? `${value}` : Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
};
export const duration = (us) => {
  if (us === null || us === undefined || Number.isNaN(us)) return "–";
  return us >= 1e6 ? (us / 1e6).toFixed(2) + " s" : us >= 1000 ? (us / 1000).toFixed(us >= 1e5 ? 0 : 1) + " ms" : us.toFixed(0) + " µs";
};

export class Chart {
  // series: names, in the order of the data; say: how a value is written; least: what the axis reaches where nothing is higher.
  constructor(parent, title, series, say, least = 1) {
    this.title = title;
    this.series = series;
    this.say = say;
    this.least = least;
    this.figure = element("figure", null, parent);
    const caption = element("figcaption", null, this.figure);
    element("b", title, caption);
    this.values = series.map((name, at) => element("span", name, element("span", null, caption, `key s${at + 1}`)));
    this.place = element("div", null, this.figure);
    this.place.setAttribute("role", "img");
    this.place.setAttribute("aria-label", `${title}, chart: no numbers yet`);
    this.data = [[], ...series.map(() => [])];
  }

  paint() {
    if (typeof uPlot === "undefined") return;
    if (this.plot) this.plot.destroy();
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid"), width: 1 }, font: "11px system-ui, sans-serif" };
    this.plot = new uPlot({
      width: Math.max(200, this.figure.clientWidth), height: 170, legend: { show: false }, cursor: { show: false },
      scales: { y: { range: (u, low, high) => [0, Math.max(this.least, high * 1.1)] } },
      axes: [{ ...axis, space: 70, values: (u, ticks) => ticks.map((second) => new Date(1000 * second).toLocaleTimeString("en-GB")) }, { ...axis, size: 56, values: (u, ticks) => ticks.map(this.say) }],
      series: [{}, ...this.series.map((name, at) => ({ label: name, stroke: colour(`--series-${at + 1}`), width: 1.75, points: { show: false }, dash: at ? [6, 2 + 2 * at] : undefined }))],
    }, this.data, this.place);
  }

  draw(data) {
    this.data = data;
    if (this.plot) this.plot.setData(data);
    else this.paint();
    const latest = this.series.map((name, at) => `${name} ${this.say(data[at + 1][data[at + 1].length - 1])}`);
    latest.forEach((text, at) => { this.values[at].textContent = text; });
    this.place.setAttribute("aria-label", `${this.title}, chart of the last minutes; now ${latest.join(", ")}`);
  }

  fit() {
    if (this.plot) this.plot.setSize({ width: Math.max(200, this.figure.clientWidth), height: 170 });
  }
}
