// The grid of a review: rows are fetched in windows as they come into sight, and each edit, paste or
// fill is one change of the review. Without this file the page shows the rows as a table.
"use strict";

(() => {
  const WINDOW = 100; // rows of a request
  const MOST = 10_000; // cells of a change, and rows that are left out at once
  const ROW = 34; // pixels; the page keeps room for as many
  const LONG = 500; // characters from which on a cell is shown cut, and not edited here

  function start(root) {
    root.dataset.started = "";
    const words = JSON.parse(root.dataset.words);
    const base = root.dataset.base;
    let state = JSON.parse(root.dataset.state);
    const say = (name, values = {}) => words[name].replace(/%\((\w+)\)s/g, (_, key) => values[key] ?? "");
    const find = (selector) => root.querySelector(selector);
    const [status, bar, said, place] = ["[data-status]", "#cell-text", "[data-said]", "[data-place]"].map(find);

    // Everything that the grid asks of docflow passes here.
    async function ask(path, body) {
      let answer;
      try {
        answer = await fetch(base + path, {
          method: body ? "POST" : "GET",
          headers: { "HX-Request": "true" },
          body: body && new URLSearchParams({ csrf: root.dataset.csrf, ...body }),
        });
      } catch {
        throw new Refused(0, "");
      }
      if (!answer.ok) throw new Refused(answer.status, await answer.text());
      return answer.headers.get("content-type").includes("json") ? answer.json() : answer.text();
    }

    // Rows: an entry for each, which is filled when it comes into sight.

    let records = [];
    let table;
    let order = null; // numbers of the rows of a filter; null: all rows of the file
    let filter = { rows: state.filter, column: state.column };
    let fetching = new Map();
    let epoch = 0;

    const blank = (count) => Array.from({ length: count }, (_, i) => ({ i, known: false, at: 0, drawn: -1 }));
    const field = (column) => `c${column}`;

    function fill(record, row) {
      for (const column of state.columns) record[field(column.id)] = row.cells[column.id] ?? null;
      Object.assign(record, { line: row.line, out: row.out, problems: row.problems, marks: row.marks, known: true });
      record.at += 1;
    }

    async function fetchWindow(number) {
      const now = epoch;
      const first = number * WINDOW;
      const lines = order?.slice(first, first + WINDOW);
      const query = lines ? `lines=${lines.join()}` : `at=${first}&size=${WINDOW}`;
      const { rows } = await ask(`/grid?${query}`);
      if (now !== epoch) return;
      if (!lines) rows.forEach((row, i) => records[first + i] && fill(records[first + i], row));
      else {
        const found = new Map(rows.map((row) => [row.line, row]));
        lines.forEach((line, i) => found.has(line) && fill(records[first + i], found.get(line)));
      }
    }

    // Has the rows from one place to another, as far as they are not known.
    async function need(from, to) {
      const wanted = [];
      for (let number = Math.floor(from / WINDOW); number * WINDOW <= to; number += 1) {
        const ends = Math.min((number + 1) * WINDOW, records.length);
        if (records.slice(Math.max(from, number * WINDOW), ends).every((each) => each.known)) continue;
        if (!fetching.has(number)) {
          const mine = fetching;
          const request = fetchWindow(number).finally(() => mine.delete(number));
          mine.set(number, request);
        }
        wanted.push(fetching.get(number));
      }
      await Promise.all(wanted);
    }

    const inSight = () => table.getRows("visible");

    function redraw() {
      // A row that is drawn anew loses what is being typed into it.
      if (isEditing()) return;
      for (const row of inSight()) if (row.getData().drawn !== row.getData().at) row.reformat();
      showCell();
    }

    let waiting;
    function look() {
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        const rows = inSight();
        if (!rows.length) return;
        redraw();
        const [from, to] = [rows[0].getData().i, rows.at(-1).getData().i];
        try {
          await need(Math.max(from - 20, 0), Math.min(to + 20, records.length - 1));
        } catch (error) {
          tell(error);
        }
        redraw();
        root.dataset.ready = "";
      }, 40);
    }

    function forget() {
      epoch += 1;
      fetching = new Map();
      for (const record of records) record.known = false;
      look();
    }

    async function show(rows, column = null) {
      delete root.dataset.ready;
      filter = { rows, column };
      const query = new URLSearchParams({ rows, ...(column && { column }) });
      order = rows === "ALL" ? null : (await ask(`/lines?${query}`)).lines;
      if (rows === "CHANGED") state.counts.CHANGED = order.length;
      epoch += 1;
      fetching = new Map();
      records = blank(order ? order.length : state.counts.ALL);
      table.setHeight(height());
      await table.setData(records);
      showFilters();
      look();
    }

    // Columns and cells.

    const named = (column) => column.title || column.header;
    const element = (tag, properties, ...children) => {
      const made = Object.assign(document.createElement(tag), properties);
      made.append(...children);
      return made;
    };

    function drawCell(cell) {
      const record = cell.getData();
      const id = Number(cell.getField().slice(1));
      const mark = record.marks?.[id];
      const [box, value] = [cell.getElement(), cell.getValue()];
      box.classList.toggle("bad", Boolean(mark?.problem));
      box.classList.toggle("fixed", Boolean(mark?.hint) && !mark.problem);
      box.title = mark ? [mark.problem, mark.remark, mark.hint].filter(Boolean).join(" · ") : "";
      if (mark?.problem) box.setAttribute("aria-invalid", "true");
      else box.removeAttribute("aria-invalid");
      if (!record.known && value === undefined) return element("span", { className: "soft", textContent: "…" });
      const text = element("bdi", { textContent: value ?? "" });
      return mark?.problem ? element("span", {}, element("span", { className: "flag", textContent: "!", ariaHidden: "true" }), text) : text;
    }

    function drawNumber(cell) {
      const record = cell.getData();
      const wrong = record.problems?.length;
      const why = [...(record.problems ?? []), record.out && say("out", { why: record.out })].filter(Boolean);
      cell.getElement().title = why.join(" · ");
      const number = record.line ?? order?.[record.i];
      const shown = element("span", { textContent: number ? number.toLocaleString(document.documentElement.lang) : "…" });
      if (wrong) shown.prepend(element("span", { className: "flag", textContent: "!", ariaHidden: "true" }));
      return shown;
    }

    function header(column) {
      const below = column.title !== column.header && (column.title || words.notImported);
      const title = element("span", {}, element("bdi", { textContent: column.header }));
      if (below) title.append(element("span", { className: "hint", textContent: below }));
      if (!state.may_write) return title;
      const menu = element("button", { type: "button", className: "plain", textContent: "⋮", ariaLabel: say("menu", { name: column.header }), ariaHasPopup: "dialog" });
      menu.addEventListener("mousedown", (event) => event.stopPropagation());
      menu.addEventListener("click", (event) => {
        event.stopPropagation();
        chooseTransform(column);
      });
      return element("div", { className: "heading" }, title, menu);
    }

    const editable = (record, id) =>
      state.may_write && record.known && (record[field(id)] ?? "").length < LONG;

    const columns = () =>
      state.columns.map((column) => ({
        field: field(column.id),
        title: "",
        titleFormatter: () => header(column),
        formatter: drawCell,
        editor: "input",
        editorParams: (cell) => ({
          selectContents: true,
          elementAttributes: { maxlength: "2000", "aria-label": say("place", { row: cell.getData().line, column: named(column) }) },
        }),
        editable: (cell) => editable(cell.getData(), column.id),
      }));

    const height = () => `min(62vh, 40rem, ${ROW * Math.max(records.length, 4) + 90}px)`;

    function build() {
      records = blank(filter.rows === "ALL" ? state.counts.ALL : 0);
      table = new Tabulator(find("[data-sheet]"), {
        data: records,
        columns: columns(),
        columnDefaults: { headerSort: false, minWidth: 130, resizable: "header" },
        rowHeader: { field: "line", formatter: drawNumber, frozen: true, width: 76, minWidth: 60, resizable: false, hozAlign: "right", titleFormatter: () => element("span", { textContent: words.row }) },
        height: height(),
        rowHeight: ROW,
        layout: "fitColumns",
        placeholder: () => element("p", { className: "soft", textContent: words.none }),
        editTriggerEvent: "dblclick",
        selectableRange: 1,
        selectableRangeColumns: true,
        selectableRangeRows: true,
        selectableRangeBlurEditOnNavigate: false,
        rowFormatter: (row) => {
          const record = row.getData();
          record.drawn = record.at;
          row.getElement().classList.toggle("out", Boolean(record.out));
          row.getElement().setAttribute("aria-rowindex", String(record.i + 2));
        },
      });
      table.on("tableBuilt", () => {
        const sheet = find("[data-sheet]");
        sheet.setAttribute("aria-rowcount", String(records.length + 1));
        sheet.removeAttribute("aria-owns");
        find(".tabulator-tableholder").setAttribute("role", "rowgroup");
        find(".tabulator-table").setAttribute("role", "presentation");
        if (filter.rows === "ALL") look();
        else show(filter.rows, filter.column).catch(tell);
      });
      table.on("scrollVertical", look);
      table.on("renderComplete", look);
      table.on("rangeChanged", showCell);
      table.on("rangeAdded", showCell);
      table.on("cellEditCancelled", look);
      table.on("cellEdited", (cell) => {
        const record = cell.getData();
        make([{ record, column: Number(cell.getField().slice(1)), value: cell.getValue() || null }]);
      });
    }

    // What is selected.

    function selected() {
      const [range] = table.getRanges();
      if (!range) return null;
      const rows = range.getRows().map((row) => row.getData());
      const ids = range.getColumns().map((column) => column.getField()).filter((name) => /^c\d/.test(name));
      return rows.length ? { rows, ids: ids.map((name) => Number(name.slice(1))) } : null;
    }

    // The cell that a selection begins at, in words and to be edited: for screen readers and phones.
    function showCell() {
      const chosen = selected();
      const [record, id] = [chosen?.rows[0], chosen?.ids[0]];
      const column = state.columns.find((each) => each.id === id);
      if (document.activeElement === bar) return;
      bar.readOnly = !(record && column && editable(record, id));
      if (!record?.known || !column) {
        [bar.value, said.textContent] = ["", ""];
        return;
      }
      const mark = record.marks[id] ?? {};
      const long = (record[field(id)] ?? "").length >= LONG && words.long;
      place.textContent = say("place", { row: record.line, column: named(column) });
      bar.value = record[field(id)] ?? "";
      bar.setAttribute("aria-invalid", String(Boolean(mark.problem)));
      said.replaceChildren(element("span", { className: "unseen", textContent: `${place.textContent}: ${bar.value}` }), " ");
      for (const [text, name] of [[mark.problem, "problem"], ...record.problems.map((each) => [each, "problem"]), [record.out && say("out", { why: record.out }), "hint"], [mark.remark, "hint"], [mark.hint, "hint"], [long, "hint"]]) {
        if (text) said.append(element("span", { className: name, textContent: text }), " ");
      }
    }

    // What is typed belongs to the cell that was selected then, wherever the next click goes.
    let edited = null;
    bar.addEventListener("focus", () => {
      const chosen = selected();
      edited = chosen && !bar.readOnly ? { record: chosen.rows[0], column: chosen.ids[0] } : null;
    });
    bar.addEventListener("change", () => {
      if (edited) make([{ ...edited, value: bar.value.trim() || null }]);
    });
    bar.addEventListener("blur", () => setTimeout(showCell));
    bar.addEventListener("keydown", (event) => {
      if (event.key === "Enter") bar.blur();
      if (event.key === "Escape") {
        if (edited) bar.value = edited.record[field(edited.column)] ?? "";
        edited = null;
        bar.blur();
      }
    });

    // Changes: one after the other, each based on the version that the one before has made.

    let last = Promise.resolve();
    let pending = 0;
    let undone = [];

    class Refused extends Error {
      constructor(status, html) {
        super(html);
        this.status = status;
      }
    }

    function tell(error, again = null) {
      if (!(error instanceof Refused)) throw error;
      const notice = document.getElementById("problem");
      if (error.status) notice.innerHTML = error.message;
      else notice.replaceChildren(element("div", { className: "message warn", role: "alert", textContent: words.noConnection }));
      if (again) {
        const button = element("button", { type: "button", textContent: words.again });
        button.addEventListener("click", () => {
          notice.replaceChildren();
          change(again);
        });
        notice.firstElementChild.append(element("p", { textContent: words.again_hint }), button);
      }
      notice.scrollIntoView({ block: "nearest" });
    }

    function change(operation, { keep = false } = {}) {
      pending += 1;
      root.setAttribute("aria-busy", "true");
      status.textContent = words.saving;
      const key = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
      last = last.then(async () => {
        try {
          const body = { version: state.version, operation: JSON.stringify(operation), key };
          const answer = await ask("/grid", body);
          document.getElementById("problem").replaceChildren();
          if (!keep) undone = [];
          adopt(answer);
          status.textContent = words.saved;
          return answer;
        } catch (error) {
          await refresh().catch(() => undefined);
          tell(error, error.status === 412 ? operation : null);
          status.textContent = "";
          return null;
        } finally {
          pending -= 1;
          if (!pending) root.removeAttribute("aria-busy");
        }
      });
      return last;
    }

    // The truth, after a refusal or news of others.
    async function refresh() {
      adopt({ ...(await ask("/state")), rows: null });
    }

    function adopt(answer) {
      const before = state.columns.map((column) => [column.id, column.title].join()).join(";");
      const counts = { ...answer.counts };
      if (filter.rows === "CHANGED") counts.CHANGED = order?.length;
      state = { ...state, ...answer, counts };
      for (const [id, html] of Object.entries(answer.parts)) {
        const part = document.getElementById(id);
        if (!part) continue;
        part.innerHTML = html;
        htmx.process(part);
      }
      for (const input of document.querySelectorAll('#import input[name="version"]')) input.value = state.version;
      const live = document.getElementById("live");
      live?.setAttribute("hx-get", live.getAttribute("hx-get").replace(/version=\d+/, `version=${state.version}`));
      document.dispatchEvent(new CustomEvent("htmx:after:swap"));
      showFilters();
      if (state.columns.map((column) => [column.id, column.title].join()).join(";") !== before) table.setColumns(columns());
      if (!answer.rows) forget();
      else {
        const found = new Map(answer.rows.map((row) => [row.line, row]));
        for (const record of records) if (found.has(record.line)) fill(record, found.get(record.line));
        redraw();
      }
    }

    function make(cells) {
      const changed = cells.filter(({ record }) => record.line);
      if (!changed.length) return undefined;
      for (const { record, column, value } of changed) {
        record[field(column)] = value;
        delete record.marks[column];
        record.at += 1;
      }
      redraw();
      return change({ kind: "SET", cells: changed.map(({ record, column, value }) => ({ row: record.line, column, value })) });
    }

    async function known(rows) {
      if (rows.length > MOST) return false;
      await need(rows[0].i, rows.at(-1).i);
      return true;
    }

    const tooMany = () => {
      status.textContent = "";
      said.replaceChildren(element("span", { className: "problem", textContent: say("tooMany", { count: MOST.toLocaleString(document.documentElement.lang) }) }));
    };

    const setting = (rows, ids, value) =>
      rows.flatMap((record, i) => ids.map((column, j) => ({ record, column, value: value(i, j, column) })))
        .filter(({ record, column, value }) => (record[field(column)] ?? null) !== value);

    async function setAll(chosen, value) {
      if (!chosen || !state.may_write) return;
      if (chosen.rows.length * chosen.ids.length > MOST || !(await known(chosen.rows))) {
        tooMany();
        return;
      }
      const cells = setting(chosen.rows, chosen.ids, value);
      if (cells.length) await make(cells);
      else status.textContent = words.nothing;
    }

    async function rowsOut(lines, back) {
      for (let i = 0; i < lines.length; i += MOST) {
        const done = await change({ kind: "EXCLUDE", rows: lines.slice(i, i + MOST), back });
        if (!done) return;
      }
      if (filter.rows === "EXCLUDED") await show("EXCLUDED");
    }

    const actions = {
      clear: () => setAll(selected(), () => null),
      async fill() {
        const chosen = selected();
        if (!chosen) return;
        const first = chosen.rows[0].i;
        const from = chosen.rows.length > 1 ? first : first - 1;
        if (from < 0) return;
        await need(from, from);
        const top = records[from];
        await setAll({ ...chosen, rows: chosen.rows.filter((each) => each !== top) }, (i, j, column) => top[field(column)] ?? null);
      },
      async undo() {
        await last;
        const version = state.own.at(-1);
        if (!version) return;
        const answer = await change({ kind: "UNDO", version }, { keep: true });
        if (answer) undone.push(answer.made);
        showTools();
      },
      async redo() {
        await last;
        const version = undone.pop();
        if (version) await change({ kind: "UNDO", version }, { keep: true });
        showTools();
      },
      async leave() {
        const chosen = selected();
        if (!chosen || !(await known(chosen.rows))) return tooMany();
        return rowsOut(chosen.rows.filter((each) => !each.out).map((each) => each.line), false);
      },
      async take() {
        const chosen = selected();
        if (!chosen || !(await known(chosen.rows))) return tooMany();
        return rowsOut(chosen.rows.filter((each) => each.out).map((each) => each.line), true);
      },
      takeAll: () => rowsOut(order, true),
    };

    root.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-do]");
      if (button) Promise.resolve(actions[button.dataset.do]()).catch(tell);
    });

    // Keyboard and clipboard, wherever the grid has the focus and no cell is being edited.

    const isEditing = () => Boolean(find(".tabulator-editing"));
    const active = () => {
      const [range] = table.getRanges();
      const column = range?.getColumns().find((each) => /^c\d/.test(each.getField()));
      return column && range.getRows()[0]?.getCell(column);
    };
    const keys = { z: "undo", y: "redo", d: "fill" };

    find("[data-sheet]").addEventListener("keydown", (event) => {
      if (isEditing() || event.target.closest("button")) return;
      const control = event.ctrlKey || event.metaKey;
      let does = control ? keys[event.key.toLowerCase()] : undefined;
      if (does === "undo" && event.shiftKey) does = "redo";
      if (event.key === "Delete" || event.key === "Backspace") does = "clear";
      if (does) {
        event.preventDefault();
        event.stopPropagation();
        Promise.resolve(actions[does]()).catch(tell);
      } else if (event.key === "F2" || (event.key.length === 1 && !control && !event.altKey)) {
        // What is typed replaces what stands in the cell.
        if (event.key === "F2") event.preventDefault();
        active()?.edit();
      } else if (event.key === "Escape") {
        find("#finish button, [data-filters] button")?.focus();
      }
    }, true);

    const quoted = (text) => (/[\t\n\r"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

    // Tab-separated, as spreadsheet programs have it: a text in quotes may hold tabs and lines.
    function parse(text) {
      const rows = [[]];
      const cells = /("(?:[^"]|"")*"|[^\t\r\n]*)(\t|\r\n|\r|\n|$)/y;
      while (cells.lastIndex < text.length) {
        const [, cell, end] = cells.exec(text) ?? [];
        if (cell === undefined) return text.split(/\r\n|\r|\n/).map((line) => line.split("\t"));
        rows.at(-1).push(/^"/.test(cell) ? cell.slice(1, -1).replaceAll('""', '"') : cell);
        if (end === "\t" && cells.lastIndex === text.length) rows.at(-1).push("");
        else if (end && end !== "\t" && cells.lastIndex < text.length) rows.push([]);
      }
      return rows;
    }

    find("[data-sheet]").addEventListener("copy", (event) => {
      const chosen = selected();
      if (isEditing() || !chosen) return;
      event.preventDefault();
      if (chosen.rows.some((record) => !record.known)) {
        // Nothing is copied that is not known: the rows are fetched, and copied by the next Ctrl+C.
        status.textContent = words.loading;
        known(chosen.rows).then((all) => (all ? undefined : tooMany())).catch(tell);
        return;
      }
      const lines = chosen.rows.map((record) => chosen.ids.map((id) => quoted(record[field(id)] ?? "")).join("\t"));
      event.clipboardData.setData("text/plain", lines.join("\n"));
      status.textContent = words.copied;
    });

    find("[data-sheet]").addEventListener("paste", (event) => {
      if (isEditing() || !state.may_write) return;
      event.preventDefault();
      paste(parse(event.clipboardData.getData("text/plain"))).catch(tell);
    });

    async function paste(texts) {
      const chosen = selected();
      if (!chosen) return;
      const all = state.columns.map((column) => column.id);
      const [height, width] = [texts.length, Math.max(...texts.map((each) => each.length))];
      // A selection that is a multiple of what is pasted is filled with it, else it begins there.
      const repeats = chosen.rows.length % height === 0 && chosen.ids.length % width === 0;
      const begin = all.indexOf(chosen.ids[0]);
      const ids = repeats ? chosen.ids : all.slice(begin, begin + width);
      const rows = repeats ? chosen.rows : records.slice(chosen.rows[0].i, chosen.rows[0].i + height);
      if (!repeats && (ids.length < width || rows.length < height)) {
        said.replaceChildren(element("span", { className: "problem", textContent: words.outside }));
        return;
      }
      await setAll({ rows, ids }, (i, j) => (texts[i % height][j % width] ?? "").trim() || null);
    }

    // Filters with their figures.

    function showFilters() {
      const wanted = [
        ["ALL", null, words.all, state.counts.ALL],
        ["PROBLEMS", null, words.problems, state.counts.PROBLEMS],
        ["CHANGED", null, words.changed, state.counts.CHANGED],
        ["EXCLUDED", null, words.excluded, state.counts.EXCLUDED],
        ...state.columns.filter((column) => column.problems).map((column) => ["PROBLEMS", column.id, say("filter", { name: column.header }), column.problems]),
      ];
      const box = find("[data-filters]");
      const focused = box.contains(document.activeElement) && document.activeElement.id;
      box.replaceChildren(
        ...wanted.map(([rows, column, text, count]) => {
          const button = element("button", { type: "button", id: `show-${rows}-${column ?? ""}`, textContent: count === undefined ? text : `${text} ${count.toLocaleString(document.documentElement.lang)}` });
          button.setAttribute("aria-pressed", String(filter.rows === rows && filter.column === column));
          button.addEventListener("click", () => last.then(() => show(rows, column)).catch(tell));
          return button;
        }),
      );
      if (focused) document.getElementById(focused)?.focus();
      showTools();
    }

    function showTools() {
      for (const [name, is] of [["undo", state.own.length], ["redo", undone.length]]) {
        const button = find(`[data-do=${name}]`);
        if (button) button.disabled = !is;
      }
      const all = find("[data-do=takeAll]");
      if (all) all.hidden = filter.rows !== "EXCLUDED" || !order?.length;
    }

    // Changes of a whole column, from its menu: what a change would do is shown before it is made.

    const dialog = find("#transform");
    const [body, proposed, title] = ["[data-body]", "[data-proposed]", "#transform-title"].map((each) => dialog.querySelector(each));
    let lent = null; // the form that is shown in the dialog, and where it belongs

    function giveBack() {
      if (lent) lent.home.append(lent.form);
      lent = null;
    }

    function open(text) {
      giveBack();
      title.textContent = text;
      body.replaceChildren();
      proposed.replaceChildren();
      if (!dialog.open) dialog.showModal();
    }

    function chooseTransform(column) {
      open(column.header);
      for (const home of document.querySelectorAll("details[data-transform]")) {
        const choice = element("button", { type: "button", textContent: home.querySelector("summary").textContent });
        choice.addEventListener("click", () => {
          open(`${column.header}: ${choice.textContent}`);
          lent = { home, form: home.querySelector("form") };
          body.append(lent.form);
          const select = lent.form.querySelector("select[name=column], select[name=into]");
          select.value = select.name === "into" ? `column:${column.id}` : String(column.id);
          lent.form.querySelector("input:not([type=hidden], [type=checkbox]), select")?.focus();
        });
        body.append(choice);
      }
    }

    dialog.addEventListener("close", giveBack);
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    });

    async function preview(form, submitter) {
      const fields = Object.fromEntries(new FormData(form, submitter));
      if (!dialog.contains(form)) open(form.closest("details")?.querySelector("summary").textContent ?? form.textContent.trim());
      await last;
      try {
        proposed.innerHTML = await ask("/grid/preview", fields);
        proposed.querySelector("button")?.focus();
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        proposed.innerHTML = error.message;
      }
    }

    const onSubmit = (event) => {
      const form = event.target;
      if (form.matches("[data-operation]")) {
        stop(event);
        dialog.close();
        undone = [];
        change(JSON.parse(form.dataset.operation));
      } else if (form.matches("[data-preview]")) {
        stop(event);
        preview(form, event.submitter).catch(tell);
      } else if (form.id === "finish" && pending) {
        stop(event);
        last.then(() => form.requestSubmit(event.submitter));
      }
    };

    function stop(event) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }

    // The page asks for news by itself; rows of others, and of the check of all rows, are shown then.
    const revision = () => /revision=\d+/.exec(document.getElementById("live")?.getAttribute("hx-get"))?.[0];
    let heard = revision();

    const onNews = () => {
      if (!root.isConnected) {
        leave();
        return;
      }
      if (revision() === heard || pending) return;
      heard = revision();
      refresh().catch(() => undefined);
    };

    const onLeave = (event) => {
      if (pending) event.preventDefault();
    };

    function leave() {
      clearTimeout(waiting);
      table.destroy();
      window.removeEventListener("submit", onSubmit, true);
      document.removeEventListener("htmx:after:swap", onNews);
      window.removeEventListener("beforeunload", onLeave);
    }

    window.addEventListener("submit", onSubmit, true);
    document.addEventListener("htmx:after:swap", onNews);
    window.addEventListener("beforeunload", onLeave);
    build();
    showFilters();
  }

  function begin() {
    for (const root of document.querySelectorAll("#review-grid:not([data-started])")) start(root);
  }

  document.addEventListener("htmx:after:swap", begin);
  begin();
})();
