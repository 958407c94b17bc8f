// The report's own code: draws charts when they come into view, sorts and copies tables. No framework, no network.
"use strict";

(() => {
  const root = document.documentElement;
  // What this code says, by name and language: knowhow/sentences/script_report.toml.
  const dictionary = JSON.parse(document.getElementById("sysdock-words").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let book = null; // the charts and themes of the page
  let library = null; // promise of vegaEmbed
  let range = null; // what charts over time show: from and until [s], or everything

  function theme() {
    const chosen = document.querySelector("input[name=theme]:checked");
    if (chosen && chosen.value !== "auto") return chosen.value;
    return dark.matches ? "dark" : "light";
  }

  // Vega is carried as base64 of gzip. An inline script runs only if its hash is in the page's policy.
  function vega() {
    library ??= (async () => {
      const packed = atob(document.getElementById("sysdock-vega").textContent);
      const bytes = Uint8Array.from(packed, (char) => char.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const script = document.createElement("script");
      script.textContent = await new Response(stream).text();
      document.head.append(script);
      return window.vegaEmbed;
    })();
    return library;
  }

  // Columns back to rows: see _packed in document.py.
  function rows(columns) {
    const keys = Object.keys(columns);
    const plain = keys.map((key) => {
      const column = columns[key];
      return Array.isArray(column) ? column : column.at.map((place) => column.names[place]);
    });
    const found = [];
    for (let at = 0; at < (plain[0] ?? []).length; at++) {
      found.push(Object.fromEntries(keys.map((key, number) => [key, plain[number][at]])));
    }
    return found;
  }

  // Names beside bars get at most two fifths of the width, legends as many columns as fit.
  function fitted(spec, width) {
    const axis = spec.encoding?.y?.axis;
    if (axis?.labelLimit) {
      const room = Math.round(Math.min(axis.labelLimit, width * 0.4));
      axis.labelLimit = room;
      if (axis.labelPadding) axis.labelPadding = room + 5;
    }
    for (const part of [spec, ...(spec.layer ?? [])]) {
      for (const channel of ["color", "shape"]) {
        const legend = part.encoding?.[channel]?.legend;
        if (legend) legend.columns = Math.max(1, Math.min(8, Math.floor(width / 100)));
      }
    }
    return spec;
  }

  function tooltip(_handler, event, _item, value) {
    let tip = document.getElementById("tip");
    if (value === null || value === undefined || value === "") {
      tip?.remove();
      return;
    }
    if (!tip) {
      tip = document.createElement("div");
      tip.id = "tip";
      document.body.append(tip);
    }
    // Names in it were recorded: they are set as text, never as markup.
    const lines = Object.entries(Object(value)).map(([name, content]) => {
      const line = document.createElement("div");
      const label = document.createElement("b");
      label.textContent = `${name}: `;
      line.append(label, document.createTextNode(String(content)));
      return line;
    });
    tip.replaceChildren(...lines);
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - box.height - 8)}px`;
  }

  // Charts over time show the same range, and dragging over one sets it for all. A chart has its own unit of time.
  function linkTime(chart) {
    const seconds = chart.usermeta?.seconds_per_unit;
    if (!seconds) return;
    const layers = chart.layer ?? [chart];
    layers[0].params = [{ name: "brush", select: { type: "interval", encodings: ["x"] } }];
    if (!range) return;
    for (const layer of layers) layer.mark.clip = true;
    chart.encoding.x.scale = { domain: range.map((moment) => moment / seconds), nice: false, zero: false };
  }

  // Where a quarter of the time or less is shown, a chart that has it shows more detail.
  function chooseDetail(chart) {
    const detail = chart.params?.find((param) => param.name === "detail");
    if (!detail || !chart.data.values.some((row) => row.detail === 1)) return;
    const { seconds_per_unit: seconds } = chart.usermeta;
    const [x, x2] = [chart.encoding.x.field, chart.encoding.x2.field];
    const whole = Math.max(...chart.data.values.map((row) => row[x2])) - Math.min(...chart.data.values.map((row) => row[x]));
    detail.value = range && range[1] - range[0] <= (whole * seconds) / 4 ? 1 : 0;
  }

  function watchBrush(place, chart) {
    const seconds = chart.usermeta?.seconds_per_unit;
    if (!seconds) return;
    let wanted = null;
    place.view.addSignalListener("brush", (_name, chosen) => {
      const [limits] = Object.values(chosen ?? {});
      wanted = limits?.length === 2 && limits[1] > limits[0] ? limits.map((limit) => limit * seconds) : null;
    });
    place.onpointerup = () => { if (wanted) show(wanted); };
    place.ondblclick = () => show(null);
  }

  function show(wanted) {
    range = wanted;
    const form = document.getElementById("range");
    if (form) {
      form.elements.from.value = wanted ? Number(wanted[0].toPrecision(9)) : "";
      form.elements.until.value = wanted ? Number(wanted[1].toPrecision(9)) : "";
    }
    for (const place of document.querySelectorAll("[data-wanted]")) {
      if (book.charts[Number(place.dataset.chart)].spec.usermeta?.seconds_per_unit) want(place);
    }
  }

  function startRange() {
    const form = document.getElementById("range");
    if (!form || !book?.charts.some((chart) => chart.spec.usermeta?.seconds_per_unit)) return;
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const limits = [form.elements.from, form.elements.until].map((field) => field.valueAsNumber);
      if (limits[0] < limits[1]) show(limits);
    });
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      show(null);
    });
  }

  // How many steps of its height a chart has.
  function steps(spec, columns) {
    return spec.encoding?.y?.scale?.domain?.length ?? new Set(columns.place).size;
  }

  // A flame graph: a click zooms, arrow keys go from rectangle to rectangle, and a text is looked for in all of them.
  function watchFlame(place, chart) {
    if (!chart.params?.some((param) => param.name === "zoom_from")) return;
    place.flame = { nodes: chart.data.values, words: chart.layer[0].encoding.tooltip, picked: 0, zoomed: 0, ...place.flame };
    place.view.addEventListener("click", (_event, item) => {
      if (item?.datum && "id" in item.datum) zoomFlame(place, item.datum.id);
    });
    place.tabIndex = 0;
    place.onkeydown = (event) => {
      const { nodes, picked } = place.flame;
      const to = { Enter: picked, Escape: 0, Home: 0 }[event.key];
      const next = nextFlame(nodes, picked, event.key);
      if (to === undefined && next === undefined) return;
      event.preventDefault();
      if (to !== undefined) zoomFlame(place, to);
      else pickFlame(place, next);
    };
    place.tools ??= flameTools(place);
    zoomFlame(place, place.flame.zoomed);
    findInFlame(place);
  }

  // The rectangle that an arrow key leads to. Rectangles of one parent follow each other in the order of their places.
  function nextFlame(nodes, picked, key) {
    const { id, parent } = nodes[picked];
    const beside = nodes.filter((node) => node.parent === parent);
    const at = beside.findIndex((node) => node.id === id);
    return {
      ArrowUp: () => nodes[parent]?.id ?? id,
      ArrowDown: () => nodes.find((node) => node.parent === id)?.id ?? id,
      ArrowLeft: () => beside[at - 1]?.id ?? id,
      ArrowRight: () => beside[at + 1]?.id ?? id,
    }[key]?.();
  }

  function pickFlame(place, id) {
    const { flame, view, tools } = place;
    flame.picked = id;
    view.signal("picked", id).runAsync();
    const node = flame.nodes[id];
    tools.said.textContent = flame.words.map(({ field, title }) => `${title}: ${node[field] || "-"}`).join(", ");
  }

  // The parent stays in view, so that a click on it leads back.
  function zoomFlame(place, id) {
    const { flame, view, tools } = place;
    const node = flame.nodes[id];
    flame.zoomed = id;
    view.signal("zoom_from", node.from).signal("zoom_to", node.to).signal("zoom_level", Math.max(node.place - 1, 0));
    tools.all.disabled = id === 0;
    pickFlame(place, id);
  }

  // Of rectangles in each other only the outermost counts.
  function findInFlame(place) {
    const { flame, view, tools } = place;
    const words = tools.sought.value.trim().toLowerCase();
    view.signal("sought", words).runAsync();
    const inside = new Set();
    let found = 0;
    let wide = 0;
    for (const node of words ? flame.nodes : []) {
      const hit = node.name.toLowerCase().includes(words);
      found += hit ? 1 : 0;
      if (hit && !inside.has(node.parent)) wide += node.to - node.from;
      if (hit || inside.has(node.parent)) inside.add(node.id);
    }
    const whole = flame.nodes[0].to - flame.nodes[0].from;
    tools.count.textContent = words ? `${found}, ${((100 * wide) / whole).toFixed(1)} %` : "";
  }

  function flameTools(place) {
    const inAll = (name) => Object.entries(dictionary[name]).map(([lang, words]) => {
      const part = document.createElement("span");
      part.className = "t";
      part.lang = lang;
      part.textContent = words;
      return part;
    });
    const bar = document.createElement("div");
    bar.className = "tools flame";
    const label = document.createElement("label");
    const sought = document.createElement("input");
    sought.type = "search";
    const count = document.createElement("span");
    count.setAttribute("aria-live", "polite");
    label.append(...inAll("search"), " ", sought, " ", count);
    const all = document.createElement("button");
    all.type = "button";
    all.append(...inAll("all"));
    const hint = document.createElement("span");
    hint.className = "muted";
    hint.append(...inAll("how_to_zoom"));
    const said = document.createElement("p");
    said.className = "muted said";
    said.setAttribute("aria-live", "polite");
    bar.append(label, " ", all, " ", hint);
    place.before(bar);
    place.after(said);
    sought.addEventListener("input", () => findInFlame(place));
    all.addEventListener("click", () => zoomFlame(place, 0));
    return { sought, count, all, said };
  }

  async function draw(place) {
    // In a closed section there is no width to draw for: when it opens.
    place.dataset.stale = place.clientWidth ? "" : "1";
    if (!place.clientWidth) return;
    const { spec, columns } = book.charts[Number(place.dataset.chart)];
    const embed = await vega();
    const chart = fitted(structuredClone(spec), place.clientWidth);
    chart.data = { values: rows(columns) };
    // Labels inside of marks end where these do.
    for (const row of chart.data.values) if ("room" in row) row.room *= place.clientWidth / chart.width;
    chart.width = place.clientWidth;
    // A height in steps cannot be joined with a width that fits: count the steps.
    if (chart.height?.step) chart.height = spec.height.step * steps(spec, columns);
    chart.autosize = { type: "fit-x", contains: "padding" };
    linkTime(chart);
    chooseDetail(chart);
    chart.config = { ...book.themes[theme()], axisX: { titleLimit: Math.round(place.clientWidth * 0.75) } };
    place.view?.finalize();
    // `ast` interprets expressions instead of compiling them, which the policy forbids.
    const options = { ast: true, actions: false, renderer: "canvas", defaultStyle: false, logLevel: 1, tooltip };
    const result = await embed(place, chart, options);
    place.view = result.view;
    watchBrush(place, chart);
    watchFlame(place, chart);
    place.classList.add("drawn");
  }

  function failed(place, error) {
    const note = document.createElement("p");
    note.className = "empty";
    note.textContent = `${dictionary.not_drawn[root.lang]}: ${error.message}`;
    place.replaceChildren(note);
    console.error(error);
  }

  // One chart after the other, so that the page stays responsive; `ready` tells when all wanted ones are drawn.
  let queue = Promise.resolve();
  function want(place) {
    place.dataset.wanted = "1";
    queue = queue.then(() => draw(place)).catch((error) => failed(place, error));
    window.sysdockReady = queue;
  }

  // The page must not move when a chart is drawn: room for axis and legend, beside what the marks need.
  function reserve(place) {
    const { spec, columns } = book.charts[Number(place.dataset.chart)];
    const marks = spec.height?.step ? spec.height.step * steps(spec, columns) : spec.height;
    const legend = spec.encoding?.color || spec.layer?.some((layer) => layer.encoding?.color?.legend);
    place.style.minHeight = `${(marks ?? 200) + (legend ? 102 : 55)}px`;
  }

  function startCharts() {
    const block = document.getElementById("sysdock-charts");
    if (!block) return;
    book = JSON.parse(block.textContent);
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((seen) => seen.isIntersecting)) {
        watcher.unobserve(entry.target);
        if (!entry.target.dataset.wanted) want(entry.target);
      }
    }, { rootMargin: "400px" });
    const places = [...document.querySelectorAll("[data-chart]")];
    places.forEach(reserve);
    places.forEach((place) => watcher.observe(place));
    const again = () => places.filter((place) => place.dataset.wanted).forEach(want);
    document.querySelectorAll("input[name=theme]").forEach((input) => input.addEventListener("change", again));
    dark.addEventListener("change", again);
    let timer = 0;
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      clearTimeout(timer);
      timer = setTimeout(again, 200);
    });
    addEventListener("beforeprint", () => places.filter((place) => !place.dataset.wanted && place.clientWidth).forEach(want));
    // `toggle` does not bubble.
    document.addEventListener("toggle", (event) => {
      event.target.querySelectorAll("[data-stale='1']").forEach(want);
    }, true);
  }

  // An attribute has one value; those in all languages are kept next to it (see `attribute` in markup.py).
  function setAttributes(lang) {
    for (const element of document.querySelectorAll(`[data-in-${lang}]`)) {
      const name = ["title", "aria-label", "alt"].find((each) => element.hasAttribute(each));
      element.setAttribute(name, element.getAttribute(`data-in-${lang}`));
    }
  }

  function startLanguages() {
    const inputs = document.querySelectorAll("input[name=lang]");
    const set = () => {
      const chosen = document.querySelector("input[name=lang]:checked")?.value ?? root.lang;
      if (chosen !== root.lang) setAttributes(chosen);
      root.lang = chosen;
    };
    inputs.forEach((input) => input.addEventListener("change", set));
    // A browser keeps the state of the switch over a reload.
    set();
  }

  function value(cell) {
    return cell.dataset.v ?? cell.textContent;
  }

  function sort(head) {
    const table = head.closest("table");
    const column = head.cellIndex;
    const numbers = head.classList.contains("n");
    const descending = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : numbers;
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [value(row.cells[column]), row]);
    keyed.sort(([first], [second]) => {
      // Empty cells come last in both directions.
      if (first === "" || second === "") return (first === "") - (second === "");
      const order = numbers ? Number(first) - Number(second) : first.localeCompare(second);
      return descending ? -order : order;
    });
    body.append(...keyed.map(([, row]) => row));
  }

  function copy(button) {
    const table = document.getElementById(button.dataset.copy);
    const line = (row) => [...row.cells].map((cell) => value(cell).replace(/[\t\n]/g, " ")).join("\t");
    const words = [...table.rows].map(line).join("\n");
    const done = () => {
      button.dataset.done = "1";
      const label = button.querySelector("[data-label]");
      label.textContent = " \u2713";
      setTimeout(() => { label.textContent = ""; }, 1500);
    };
    // A page from file:// may lack the clipboard interface.
    const byHand = () => {
      const field = document.createElement("textarea");
      field.value = words;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(words).then(done, byHand);
    else byHand();
  }

  function search(field) {
    const table = document.getElementById(field.dataset.search);
    const rows = [...table.tBodies[0].rows];
    const counted = field.parentElement.querySelector("[data-count]");
    const filter = () => {
      const words = field.value.trim().toLowerCase();
      let left = 0;
      for (const row of rows) {
        row.hidden = words !== "" && !row.textContent.toLowerCase().includes(words);
        left += row.hidden ? 0 : 1;
      }
      counted.textContent = words ? `${left} / ${rows.length}` : "";
    };
    field.parentElement.hidden = false;
    field.addEventListener("input", filter);
  }

  function startTables() {
    document.querySelectorAll("input[data-search]").forEach(search);
    for (const head of document.querySelectorAll("table.data th")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(head));
    }
    for (const button of document.querySelectorAll("button[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", () => copy(button));
    }
  }

  // A number of a table tells what it is exactly, and leads to the SQL that made it.
  function tellOrigin(cell) {
    const head = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
    const place = document.querySelector(`[id="${cell.closest("section.analysis").id}"] details.sql pre`)?.id;
    const panel = document.getElementById("origin") ?? document.createElement("div");
    panel.id = "origin";
    panel.setAttribute("role", "status");
    const number = document.createElement("b");
    number.textContent = `${value(head)} = ${value(cell)}`;
    const words = document.createElement("div");
    words.textContent = head.title;
    const link = document.createElement("a");
    link.href = `#${place}`;
    link.textContent = "SQL";
    link.addEventListener("click", () => markColumn(document.getElementById(place), value(head)));
    panel.replaceChildren(number, words, link);
    document.body.append(panel);
    const box = cell.getBoundingClientRect();
    panel.style.left = `${Math.max(8, Math.min(box.left, innerWidth - panel.offsetWidth - 8)) + scrollX}px`;
    panel.style.top = `${box.bottom + scrollY + 2}px`;
  }

  // Marks every place of the SQL that names the column.
  function markColumn(block, column) {
    const parts = block.textContent.split(new RegExp(`\\b(${column})\\b`));
    block.replaceChildren(...parts.map((words, number) => {
      if (number % 2 === 0) return document.createTextNode(words);
      const mark = document.createElement("mark");
      mark.textContent = words;
      return mark;
    }));
  }

  // Sections that a link leads to, or into, are closed at first; browsers differ in whether they open them.
  function openTarget() {
    const target = document.getElementById(location.hash.slice(1));
    let block = target?.querySelector(":scope > details.fold") ?? target?.closest("details");
    if (!block || block.open) return;
    for (; block; block = block.parentElement.closest("details")) block.open = true;
    target.scrollIntoView();
  }

  function startFolds() {
    for (const tools of document.querySelectorAll("[data-folds]")) {
      tools.hidden = false;
      tools.addEventListener("click", (event) => {
        const wanted = event.target.closest("button")?.dataset.open;
        if (wanted === undefined) return;
        for (const fold of tools.parentElement.querySelectorAll("details.fold")) fold.open = wanted === "1";
      });
    }
  }

  function startOrigins() {
    addEventListener("hashchange", openTarget);
    document.addEventListener("click", (event) => {
      const cell = event.target.closest("section.analysis td.n");
      if (cell) tellOrigin(cell);
      else if (!event.target.closest("#origin") || event.target.closest("#origin a")) {
        document.getElementById("origin")?.remove();
      }
    });
    addEventListener("keydown", (event) => {
      if (event.key === "Escape") document.getElementById("origin")?.remove();
    });
    openTarget();
  }

  startOrigins();
  startFolds();
  startLanguages();
  startTables();
  startCharts();
  startRange();
})();
