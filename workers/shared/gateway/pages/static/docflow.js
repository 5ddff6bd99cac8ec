// What HTML and htmx cannot do by themselves. Every page works without this file too, except that
// nothing refreshes by itself, files have no progress bar and values cannot be searched.
"use strict";

(() => {
  const find = (selector, within = document) => within.querySelector(selector);
  const AWAY = "#away";
  // What this file says, in the language of the page.
  const words = find("#words").dataset;

  const LANGUAGE = document.documentElement.lang;

  // Chromium calls the language of a POSIX locale `en-US@posix`, which is no language tag.
  function isTag(text) {
    try {
      return Intl.getCanonicalLocales(text).length > 0;
    } catch {
      return false;
    }
  }

  // Moments in the viewer's own zone, and as the viewer's region writes them where the page is in
  // its language; without this script they stand in UTC, and say so.
  const region = navigator.languages.find(
    (each) => each.split("-")[0] === LANGUAGE.split("-")[0] && isTag(each),
  );
  const moments = new Intl.DateTimeFormat(region ?? LANGUAGE, { dateStyle: "medium", timeStyle: "short" });

  function localiseTimes() {
    for (const time of document.querySelectorAll("time[data-moment], time[data-since]")) {
      const then = new Date(time.dateTime);
      if (Number.isNaN(then.getTime())) continue;
      const text = moments.format(then);
      if ("since" in time.dataset) time.title = text;
      else if (time.textContent !== text) time.textContent = text;
    }
  }

  document.addEventListener("htmx:after:swap", localiseTimes);

  // In a frame of another site another script fetches pages, as no cookie says who asks.
  const embedded = window.docflow;

  function announce(sentence) {
    const announcer = find("#announcer");
    if (announcer) announcer.textContent = sentence;
  }

  // Sign-in: a link may carry the token in its fragment, which no server and no log ever sees.
  function fillToken() {
    const field = find("#token");
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (!field || !token) return;
    field.value = token;
    field.closest("details")?.setAttribute("open", "");
    history.replaceState(null, "", location.pathname + location.search);
    find("#sign-in")?.focus();
  }

  // A gateway that does not answer is reported once; the notice disappears when it is back.
  function away(sentence) {
    const notice = find(AWAY);
    if (!notice) return;
    find("p", notice).textContent = sentence;
    notice.hidden = false;
  }

  document.addEventListener("docflow:away", () => away(words.refresh));

  document.addEventListener("htmx:error", (event) => {
    const context = event.detail.ctx;
    if (!context || context.response) return;
    away(
      context.request.method === "GET"
        ? words.refresh
        : words.unsaved,
    );
  });

  document.addEventListener("htmx:after:request", (event) => {
    const notice = find(AWAY);
    if (notice && event.detail.ctx.response.status < 500) notice.hidden = true;
  });

  document.addEventListener("htmx:before:request", (event) => {
    if (event.detail.ctx.request.method === "POST") announce(words.moment);
  });

  // A person who worked inside the replaced part continues at its top, not at the start of the page.
  let focusWasInside = false;

  document.addEventListener("htmx:before:swap", (event) => {
    const region = find("[data-region]");
    const replaced = event.detail.tasks.some((task) => task.target === region);
    focusWasInside = Boolean(replaced && region.contains(document.activeElement));
  });

  document.addEventListener("htmx:after:swap", () => {
    if (!focusWasInside || document.activeElement !== document.body) return;
    focusWasInside = false;
    find("[data-region] [data-start]")?.focus();
  });

  // Choices that are not saved yet.
  const unsaved = () => find("form[data-keep][data-changed]");

  document.addEventListener("change", (event) => {
    event.target.closest("form[data-keep]")?.setAttribute("data-changed", "");
  });

  document.addEventListener("submit", (event) => event.target.removeAttribute("data-changed"));

  // The main button says what it will do with the choices as they are now.
  document.addEventListener("change", (event) => {
    const button = find("#confirm[data-some]", event.target.form ?? undefined);
    if (!button) return;
    const out = [...event.target.form.querySelectorAll("select")].filter((each) => ["", "-"].includes(each.value));
    button.textContent = out.length ? button.dataset.some.replace("#", out.length) : button.dataset.all;
  });

  window.addEventListener("beforeunload", (event) => {
    if (unsaved()) event.preventDefault();
  });

  // A menu closes if the person goes on elsewhere.
  function closeMenus(event) {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (event.key === "Escape" || !menu.contains(event.target)) menu.open = false;
    }
  }

  document.addEventListener("click", closeMenus);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenus(event);
  });

  // Single keys, unless the person has switched them off: then no link names one.
  let before = "";

  function lineBeside(step) {
    const lines = [...document.querySelectorAll("main tbody th a")];
    const at = lines.indexOf(document.activeElement);
    return lines[at < 0 ? (step > 0 ? 0 : lines.length - 1) : at + step];
  }

  document.addEventListener("keydown", (event) => {
    const search = find("#find-run[aria-keyshortcuts]");
    const typing = event.target.closest("input, select, textarea, [contenteditable], [role=grid], dialog");
    if (!search || typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const link = before === "g" ? find(`.bar a[aria-keyshortcuts="g ${CSS.escape(event.key)}"]`) : null;
    before = event.key;
    const goal = link ?? { "/": search, j: lineBeside(1), k: lineBeside(-1), "?": find('.bar a[href="/settings"]') }[event.key];
    if (!goal) return;
    event.preventDefault();
    if (link || event.key === "?") goal.click();
    else goal.focus();
  });

  // A suggestion fills the select beside it; without this script the button saves it at once.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-pick]");
    const select = button && document.getElementById(button.dataset.for);
    if (!select) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    select.value = button.dataset.pick;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    select.focus();
    announce(button.dataset.announcement);
  }, true);

  // Searching for what a value means: Enter takes the first, arrow down goes into the list. An
  // Enter that comes before the answer waits for it: what is shown until then is something else.
  const resultsOf = (search) => document.getElementById(search.dataset.search);
  const isAnswered = (search) =>
    find("[data-query]", resultsOf(search))?.dataset.query === search.value.trim();

  function takeFirst(search) {
    delete search.dataset.enter;
    const first = find("input[type=radio]", resultsOf(search));
    if (!first || !search.value.trim()) return;
    first.click();
    document.getElementById(first.id)?.focus();
  }

  document.addEventListener("keydown", (event) => {
    const search = event.target.closest?.("input[data-search]");
    if (!search) return;
    delete search.dataset.enter;
    if (event.key === "Escape") search.value = "";
    if (event.key === "Enter") {
      event.preventDefault();
      if (isAnswered(search)) takeFirst(search);
      else search.dataset.enter = "";
    }
    if (event.key === "ArrowDown") {
      event.preventDefault();
      find("input[type=radio]", resultsOf(search))?.focus();
    }
  });

  document.addEventListener("htmx:after:swap", () => {
    for (const search of document.querySelectorAll("input[data-search][data-enter]")) {
      if (isAnswered(search)) takeFirst(search);
    }
  });

  // What was chosen from a search stays when the next search replaces its results.
  document.addEventListener("change", (event) => {
    const radio = event.target;
    const results = radio.closest?.("[data-results]");
    if (!results || radio.type !== "radio") return;
    const chips = document.getElementById(results.dataset.results);
    chips.insertBefore(radio.closest("label"), find("input[type=search]", chips));
    radio.focus();
  });

  // Uploads: drag and drop, and how far it has come.
  const MEGABYTE = 1e6;

  function fileSize(bytes) {
    const [size, unit] = bytes < MEGABYTE ? [bytes / 1e3, "kB"] : [bytes / MEGABYTE, "MB"];
    // Rounded up: only an empty file has nothing in it.
    return `${(Math.ceil(size * 10) / 10).toLocaleString(LANGUAGE)} ${unit}`;
  }

  function watchDrop(form) {
    const drop = find(".drop", form);
    const file = find("input[type=file]", form);
    const name = find("[data-filename]", form);
    const show = () => {
      const chosen = file.files[0];
      name.textContent = chosen ? `${chosen.name} (${fileSize(chosen.size)})` : "";
    };
    for (const kind of ["dragenter", "dragover"]) {
      drop.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.add("over");
      });
    }
    for (const kind of ["dragleave", "drop"]) {
      drop.addEventListener(kind, () => drop.classList.remove("over"));
    }
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      if (!event.dataTransfer.files.length) return;
      file.files = event.dataTransfer.files;
      show();
      file.focus();
    });
    file.addEventListener("change", show);
  }

  function refuse(form, html) {
    const problems = find("#problems", form);
    problems.innerHTML = html;
    find("[tabindex]", problems)?.focus();
  }

  function send(form, again = false) {
    const button = find("button.main", form);
    const area = find("#sending", form);
    const bar = find("progress", area);
    const text = find("#sent", area);
    const request = new XMLHttpRequest();
    const end = () => {
      button.disabled = false;
      area.hidden = true;
    };
    let announced = -1;
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      const percent = Math.floor((100 * event.loaded) / event.total);
      bar.value = percent;
      text.textContent = percent < 100 ? words.sent.replace("%(percent)s", `${percent} %`) : words.allSent;
      // A reader would never get to the end of a sentence for each percent.
      if (Math.floor(percent / 25) !== announced) {
        announced = Math.floor(percent / 25);
        announce(text.textContent);
      }
    });
    request.addEventListener("load", async () => {
      const next = request.getResponseHeader("HX-Redirect");
      if (next && embedded) embedded.go(next);
      else if (next) location.assign(next);
      else if (request.status === 401 && embedded && !again) {
        await embedded.renew();
        send(form, true);
      } else {
        end();
        refuse(form, request.responseText);
      }
    });
    request.addEventListener("error", () => {
      end();
      away(words.interrupted);
    });
    request.open("POST", form.action);
    request.setRequestHeader("HX-Request", "true");
    for (const [name, value] of Object.entries(embedded?.headers() ?? {})) request.setRequestHeader(name, value);
    request.send(new FormData(form));
    button.disabled = true;
    bar.value = 0;
    area.hidden = false;
  }

  function watchUpload() {
    const form = find("form[data-upload]");
    if (!form) return;
    watchDrop(form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const size = find("input[type=file]", form).files[0]?.size ?? 0;
      if (size > Number(form.dataset.limit)) refuse(form, find("#too-large").innerHTML);
      else send(form);
    });
    // A type asks for its own kind of context.
    const type = find("[name=importType]", form);
    const context = find("[name=contextId]", form);
    const show = () => {
      const table = type.selectedOptions[0]?.dataset.context;
      for (const group of context.querySelectorAll("optgroup")) {
        group.hidden = group.disabled = group.dataset.table !== table;
      }
      context.required = Boolean(table);
      context.closest(".field").hidden = !table;
      const scope = (type.selectedOptions[0]?.dataset.scope ?? "").split(" ");
      for (const field of form.querySelectorAll("[data-scope-name]")) {
        const asked = scope.includes(field.dataset.scopeName);
        const input = find("input", field);
        field.hidden = input.disabled = !asked;
        input.required = asked;
      }
      if (context.selectedOptions[0]?.parentElement.disabled) context.value = "";
    };
    type.addEventListener("change", show);
    show();
  }

  // A page that shows something in progress hears of news as server-sent events, and fetches what
  // has changed; the connection is made again by the browser until nothing more can happen.
  function watchEvents() {
    const address = find("[data-events]")?.dataset.events;
    if (!address) return;
    const events = new EventSource(address);
    events.addEventListener("revision", (event) => {
      const shown = find("[data-revision]");
      if (!shown || shown.dataset.revision === event.data) return;
      shown.dispatchEvent(new CustomEvent("news"));
    });
    window.addEventListener("pagehide", () => events.close());
  }

  // A part of a page that needs more than this file says what, and gets it once: parts come and go.
  const loaded = new Map();

  function load(address, make) {
    if (!loaded.has(address)) {
      loaded.set(address, new Promise((resolve) => {
        const element = make(address);
        element.addEventListener("load", resolve);
        document.head.append(element);
      }));
    }
    return loaded.get(address);
  }

  async function loadParts() {
    for (const part of document.querySelectorAll("[data-scripts]")) {
      const style = part.dataset.style;
      if (style) await load(style, (href) => Object.assign(document.createElement("link"), { rel: "stylesheet", href }));
      for (const each of part.dataset.scripts.split(" ")) {
        await load(each, (src) => Object.assign(document.createElement("script"), { src }));
      }
    }
  }

  document.addEventListener("htmx:after:swap", loadParts);

  loadParts();
  document.addEventListener("docflow:shown", () => {
    loadParts();
    localiseTimes();
    watchUpload();
  });

  localiseTimes();
  fillToken();
  watchEvents();
  watchUpload();
})();
