// The page of a disk's map: draws cells of packed pieces, zooms, tells whose a cell is, finds files. No framework, no network.
"use strict";

(() => {
  const SIDE = 768; // of the canvas [pixels]
  const CELLS = 8; // the square shown has at most 2^CELLS cells a side
  const LISTED = 60; // files listed for a cell or a search
  const NAMED_UNKNOWN = 7;
  const BREAK = 3;
  // By orientation of the curve, for each quarter along it: column, row, orientation in it. As in crates/disk/src/map/curve.rs.
  const ORIENTATIONS = [
    [[0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 0, 3]],
    [[0, 0, 0], [1, 0, 1], [1, 1, 1], [0, 1, 2]],
    [[1, 1, 3], [1, 0, 2], [0, 0, 2], [0, 1, 1]],
    [[1, 1, 2], [0, 1, 3], [0, 0, 3], [1, 0, 0]],
  ];
  const canvas = document.getElementById("map");
  const context = canvas.getContext("2d");
  let book = null; // what the page says of the device
  let files = null; // by number: [path, fragments, size]
  let pieces = null; // start, length, mark, owner; in order of address
  let lit = null; // numbers of the files that were searched for
  let view = { level: 0, column: 0, row: 0 }; // which of the 2^level x 2^level squares is shown

  const dictionary = JSON.parse(document.getElementById("sysdock-words").textContent);
  const language = () => document.querySelector("input[name=lang]:checked")?.value ?? document.documentElement.lang;
  // A sentence of knowhow/sentences/script_map.toml, with values in place of the words in capitals.
  const words = (name, values = {}) => Object.entries(values).reduce(
    (text, [place, value]) => text.replace(place, () => value), dictionary[name][language()]);

  async function unpacked(name) {
    const text = atob(document.getElementById(name).textContent);
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream);
  }

  // See `pack` in crates/disk/src/map/packed.rs.
  function unpack(bytes, count, unit) {
    const found = {
      start: new Float64Array(count), length: new Float64Array(count),
      mark: new Uint8Array(count), owner: new Int32Array(count),
    };
    let at = 0;
    const number = () => {
      let value = 0;
      for (let scale = 1; ; scale *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * scale;
        if (byte < 128) return value;
      }
    };
    for (let each = 0; each < count; each++) found.start[each] = number() * unit;
    for (let each = 0; each < count; each++) found.length[each] = number() * unit;
    found.mark.set(bytes.subarray(at, at + count));
    at += count;
    let end = 0;
    let last = 0;
    for (let each = 0; each < count; each++) {
      found.start[each] += end;
      end = found.start[each] + found.length[each];
      const folded = number() - 1;
      if (folded >= 0) last += folded % 2 ? -(folded + 1) / 2 : folded / 2;
      found.owner[each] = folded >= 0 ? last : -1;
    }
    return found;
  }

  // Where a cell of the square that is shown begins on the curve of the whole device, and how cells lie in it.
  function square() {
    const { level, column, row } = view;
    const order = Math.max(0, Math.min(CELLS, book.deepest - level));
    if (book.curve === "rows") return { order, cell: (x, y) => (row * 2 ** order + y) * 2 ** (order + level) + column * 2 ** order + x };
    let [index, orientation] = [0, 0];
    for (let step = level - 1; step >= 0; step--) {
      const [x, y] = [Math.floor(column / 2 ** step) % 2, Math.floor(row / 2 ** step) % 2];
      const quarter = ORIENTATIONS[orientation].findIndex((place) => place[0] === x && place[1] === y);
      index = index * 4 + quarter;
      orientation = ORIENTATIONS[orientation][quarter][2];
    }
    return { order, first: index * 4 ** order, orientation };
  }

  function place(order, index, orientation) {
    let [x, y] = [0, 0];
    for (let level = order - 1; level >= 0; level--) {
      const [column, row, next] = ORIENTATIONS[orientation][Math.floor(index / 4 ** level) % 4];
      [x, y, orientation] = [x * 2 + column, y * 2 + row, next];
    }
    return [x, y];
  }

  // The first piece that ends behind an address.
  function pieceAt(address) {
    let [low, high] = [0, pieces.start.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pieces.start[middle] + pieces.length[middle] <= address) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Bytes of each class, and of what is lit, between two addresses; `from` is the first piece to look at. Gives the next one.
  function sumUp(start, end, from, sums) {
    sums.fill(0);
    let known = 0;
    let each = from;
    for (; each < pieces.start.length && pieces.start[each] < end; each++) {
      const until = Math.min(end, pieces.start[each] + pieces.length[each]);
      let at = Math.max(start, pieces.start[each]);
      known += until - at;
      if (lit ? lit.has(pieces.owner[each]) : pieces.mark[each] & 16) sums[8] += until - at;
      if (pieces.mark[each] & 8) {
        const broken = Math.max(0, Math.min(until, pieces.start[each] + book.block_bytes) - at);
        sums[BREAK] += broken;
        at += broken;
      }
      sums[pieces.mark[each] & 7] += until - at;
      if (pieces.start[each] + pieces.length[each] > end) break;
    }
    sums[NAMED_UNKNOWN] += Math.max(0, end - start - known);
    return each;
  }

  function isSecond(pattern, x, y) {
    if (pattern === "checks") return ((x >> 2) + (y >> 2)) % 2 === 1;
    if (pattern === "diagonals") return (x + y) % 6 < 2;
    return pattern === "lines" && y % 6 < 2;
  }

  function colour(sums, total, x, y, searching) {
    if (sums[8] > 0) return [194, 0, 123];
    const mixed = [0, 0, 0];
    for (let each = 0; each < 8; each++) {
      if (!sums[each]) continue;
      const paint = book.shares[each];
      const values = isSecond(paint.pattern, x, y) ? paint.second_rgb : paint.rgb;
      for (let of = 0; of < 3; of++) mixed[of] += (values[of] * sums[each]) / total;
    }
    return searching ? mixed.map((value) => value / 2 + 123) : mixed;
  }

  function cells(visit) {
    const { order, first, orientation, cell } = square();
    const step = book.size_bytes / 4 ** (order + view.level);
    const sums = new Float64Array(9);
    if (cell) {
      for (let y = 0; y < 2 ** order; y++) {
        let from = pieceAt(cell(0, y) * step);
        for (let x = 0; x < 2 ** order; x++) {
          const start = cell(x, y) * step;
          from = sumUp(start, start + step, from, sums);
          visit(x, y, sums, step);
        }
      }
      return;
    }
    let from = pieceAt(first * step);
    for (let index = 0; index < 4 ** order; index++) {
      const start = (first + index) * step;
      from = sumUp(start, start + step, from, sums);
      visit(...place(order, index, orientation), sums, step);
    }
  }

  function draw() {
    const scale = SIDE / 2 ** square().order;
    const image = context.createImageData(SIDE, SIDE);
    const searching = lit !== null || book.is_search;
    cells((column, row, sums, total) => {
      for (let y = row * scale; y < (row + 1) * scale; y++) {
        for (let x = column * scale; x < (column + 1) * scale; x++) {
          image.data.set([...colour(sums, total, x, y, searching), 255], (y * SIDE + x) * 4);
        }
      }
    });
    context.putImageData(image, 0, 0);
    const step = book.size_bytes / 4 ** (square().order + view.level);
    document.getElementById("scale").textContent =
      words("cell", { SIZE: size(step) }) + ` (x ${2 ** view.level})`;
    document.getElementById("out").disabled = view.level === 0;
  }

  function size(bytes) {
    for (const [unit, name] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
      if (bytes >= unit) return `${Number((bytes / unit).toPrecision(3))} ${name}`;
    }
    return `${Number(bytes.toPrecision(3))} B`;
  }

  // Column and row of the cell below the pointer.
  function pointed(event) {
    const box = canvas.getBoundingClientRect();
    const side = 2 ** square().order;
    const part = (value, extent) => Math.max(0, Math.min(side - 1, Math.floor((value / extent) * side)));
    return [part(event.clientX - box.left, box.width), part(event.clientY - box.top, box.height)];
  }

  function rangeOf(column, row) {
    const { order, first, orientation, cell } = square();
    const step = book.size_bytes / 4 ** (order + view.level);
    if (cell) return [cell(column, row) * step, (cell(column, row) + 1) * step];
    let index = 0;
    let turned = orientation;
    for (let level = order - 1; level >= 0; level--) {
      const [x, y] = [(column >> level) & 1, (row >> level) & 1];
      const quarter = ORIENTATIONS[turned].findIndex((each) => each[0] === x && each[1] === y);
      index = index * 4 + quarter;
      turned = ORIENTATIONS[turned][quarter][2];
    }
    return [(first + index) * step, (first + index + 1) * step];
  }

  // Recorded names are set as text, never as markup.
  function list(head, lines) {
    const title = document.createElement("p");
    title.textContent = head;
    const items = document.createElement("ul");
    for (const line of lines) {
      const item = document.createElement("li");
      item.textContent = line;
      items.append(item);
    }
    document.getElementById("found").replaceChildren(title, items);
  }

  // An address of the map as one of a device, where several lie behind one another.
  function onDevice(address) {
    const bytes = (value) => Math.ceil(value).toLocaleString("en");
    if (book.devices.length < 2) return bytes(address);
    const device = book.devices.filter((each) => each.from <= address).pop();
    const name = device.path || words("device", { NUMBER: device.device });
    return `${name}: ${bytes(address - device.from)}`;
  }

  function told(start, end) {
    const lines = [];
    let each = pieceAt(start);
    for (; each < pieces.start.length && pieces.start[each] < end && lines.length < LISTED; each++) {
      const file = files[pieces.owner[each]];
      const name = file ? file[0] : book.shares[pieces.mark[each] & 7].name[language()];
      const fragments = file ? words("fragments", { NUMBER: file[1] }) : "";
      const broken = pieces.mark[each] & 8 ? words("break") : "";
      const at = `${onDevice(pieces.start[each])} + ${size(pieces.length[each])}`;
      lines.push(`${name} (${at}${fragments}${broken})`);
    }
    const more = each < pieces.start.length && pieces.start[each] < end ? words("first_ones") : "";
    const range = `${onDevice(start)} - ${onDevice(end)}`;
    list(words("bytes", { RANGE: range + more }), lines.length ? lines : [words("in_no_table")]);
  }

  function search(text) {
    lit = null;
    if (text) {
      const found = [];
      files.forEach((file, number) => {
        if (file[0].includes(text)) found.push(number);
      });
      lit = new Set(found);
      const lines = found.slice(0, LISTED).map((number) => words(
        "file", { PATH: files[number][0], NUMBER: files[number][1] }));
      list(words("files", { NUMBER: found.length }), lines);
    } else {
      document.getElementById("found").replaceChildren();
    }
    draw();
  }

  function zoom(column, row) {
    const { order } = square();
    if (view.level >= book.deepest || order === 0) return;
    const half = 2 ** order / 2;
    view = { level: view.level + 1, column: view.column * 2 + Number(column >= half), row: view.row * 2 + Number(row >= half) };
    draw();
  }

  function move(columns, rows) {
    const most = 2 ** view.level - 1;
    const within = (value) => Math.max(0, Math.min(most, value));
    view = { ...view, column: within(view.column + columns), row: within(view.row + rows) };
    draw();
  }

  function out() {
    if (view.level === 0) return;
    view = { level: view.level - 1, column: view.column >> 1, row: view.row >> 1 };
    draw();
  }

  function listen() {
    canvas.addEventListener("click", (event) => told(...rangeOf(...pointed(event))));
    canvas.addEventListener("dblclick", (event) => zoom(...pointed(event)));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.deltaY < 0) zoom(...pointed(event));
      else out();
    }, { passive: false });
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    canvas.addEventListener("keydown", (event) => {
      if (moves[event.key]) move(...moves[event.key]);
      else if (event.key === "+") zoom(0, 0);
      else if (event.key === "-") out();
      else return;
      event.preventDefault();
    });
    document.getElementById("out").addEventListener("click", out);
    const form = document.getElementById("search");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      search(form.elements.path.value);
    });
    form.addEventListener("reset", () => search(""));
    for (const radio of document.querySelectorAll("input[name=lang]")) radio.addEventListener("change", draw);
  }

  function startLegend() {
    const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    book.shares.forEach((share, number) => {
      [share.rgb, share.second_rgb] = [rgb(share.colour), rgb(share.second)];
      const swatch = document.getElementById(`swatch-${number}`).getContext("2d");
      for (let y = 0; y < 22; y++) {
        for (let x = 0; x < 22; x++) {
          swatch.fillStyle = isSecond(share.pattern, x, y) ? share.second : share.colour;
          swatch.fillRect(x, y, 1, 1);
        }
      }
    });
  }

  async function start() {
    book = JSON.parse(document.getElementById("sysdock-map").textContent);
    const bytes = new Uint8Array(await (await unpacked("sysdock-pieces")).arrayBuffer());
    pieces = unpack(bytes, book.packed.count, book.packed.unit_bytes);
    files = await (await unpacked("sysdock-files")).json();
    book.deepest = Math.max(0, Math.ceil(Math.log2(book.size_bytes / book.block_bytes) / 2));
    startLegend();
    listen();
    draw();
    canvas.dataset.ready = "yes";
  }

  start();
})();
