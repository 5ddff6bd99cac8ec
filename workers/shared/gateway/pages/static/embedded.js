// The importer inside of a page of another site. It keeps the upload token in memory, and sends it
// as a header with every request; no cookie and no address ever holds it.
"use strict";

(() => {
  const setup = document.querySelector("#embed").dataset;
  const origins = JSON.parse(setup.origins);
  const content = document.querySelector("#content");
  const closing = document.querySelector("#close");
  const ASK_AGAIN_MS = 15_000;

  if (window.parent === window) {
    document.querySelector("#waiting").hidden = closing.hidden = true;
    document.querySelector("#alone").hidden = false;
    return;
  }

  // The site around the frame: the browser says which one it is, else its first message does.
  const around = [window.location.ancestorOrigins?.[0], document.referrer && new URL(document.referrer).origin];
  let host = around.find((each) => origins.includes(each));

  function tell(kind, detail = {}) {
    for (const each of host ? [host] : origins) {
      window.parent.postMessage({ ...detail, type: `docflow:${kind}` }, each);
    }
  }

  let token = "";
  let renewal = null;
  let opened = false;

  function renew() {
    if (renewal) return renewal.promise;
    renewal = {};
    renewal.promise = new Promise((resolve) => {
      const ask = () => tell("token-needed", { session: setup.session });
      // A page that could get no token may get one later.
      const again = setInterval(ask, ASK_AGAIN_MS);
      renewal.end = () => {
        clearInterval(again);
        resolve();
      };
      ask();
    });
    return renewal.promise;
  }

  window.addEventListener("message", (event) => {
    if (event.source !== window.parent || !origins.includes(event.origin)) return;
    if (event.data?.type !== "docflow:token" || typeof event.data.token !== "string") return;
    host = event.origin;
    token = event.data.token;
    renewal?.end();
    renewal = null;
    if (opened) return;
    opened = true;
    const upload = event.data.upload;
    const known = /^[0-9a-f-]{36}$/.test(upload ?? "");
    go(known ? setup.start.replace(/[^/]*$/, upload) : setup.start).then(() => tell("ready"));
  });

  function headers() {
    const language = setup.language && { "Accept-Language": setup.language };
    return { Authorization: `Bearer ${token}`, ...language };
  }

  // htmx asks by this as well.
  const fetched = window.fetch.bind(window);
  window.fetch = async (address, options = {}) => {
    if (new URL(address, window.location).origin !== window.location.origin) return fetched(address, options);
    const send = () =>
      fetched(address, { ...options, credentials: "omit", headers: { ...options.headers, ...headers() } });
    const sent = token;
    const answer = await send();
    if (answer.status !== 401) return answer;
    if (token === sent) await renew();
    return send();
  };

  // Whatever is no page is a file to keep.
  async function keep(answer) {
    const named = /filename="?([^";]+)"?/.exec(answer.headers.get("Content-Disposition") ?? "");
    const encoded = /filename\*=utf-8''([^;]+)/i.exec(answer.headers.get("Content-Disposition") ?? "");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = encoded ? decodeURIComponent(encoded[1]) : (named?.[1] ?? "");
    link.click();
    URL.revokeObjectURL(link.href);
  }

  async function go(address, options) {
    const answer = await window.fetch(address, options).catch(() => null);
    const isPage = answer?.headers.get("Content-Type")?.startsWith("text/html");
    if (!isPage) {
      if (answer?.ok) await keep(answer);
      else document.dispatchEvent(new CustomEvent("docflow:away"));
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = page.title;
    content.replaceChildren(...(page.querySelector("#content") ?? page.body).childNodes);
    window.htmx.process(content);
    document.dispatchEvent(new CustomEvent("docflow:shown"));
    const place = new URL(answer.url).hash || new URL(address, window.location).hash;
    // In a frame of another site, browsers leave that to scripts.
    content.querySelector("[autofocus]")?.focus();
    if (place) document.getElementById(place.slice(1))?.scrollIntoView();
    report();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || link.target || link.origin !== window.location.origin) return;
    if (link.protocol === "blob:" || link.getAttribute("href").startsWith("#")) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });

  // Forms that htmx and the upload leave alone.
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    const form = event.target;
    const fields = new FormData(form, event.submitter);
    const address = new URL(event.submitter?.getAttribute("formaction") ?? form.getAttribute("action"), window.location);
    const plain = form.enctype === "multipart/form-data" ? fields : new URLSearchParams(fields);
    if (form.method !== "get") {
      go(address.href, { method: "POST", body: plain });
      return;
    }
    address.search = new URLSearchParams(fields);
    go(address.href);
  });

  // What the site around hears of.
  const MAPPING = ["columns", "values"];
  let shown = {};

  function report() {
    const now = { ...document.querySelector("[data-panel]")?.dataset };
    const detail = { id: now.upload, state: now.state };
    const isSame = now.upload === shown.upload;
    if (isSame && MAPPING.includes(shown.panel) && ["review", "processing", "done"].includes(now.panel)) {
      tell("mapped", detail);
    }
    const isNew = !(isSame && shown.state === now.state);
    if (now.state === "COMPLETED" && isNew) tell("completed", { ...detail, counts: JSON.parse(now.counts) });
    if (["FAILED", "CANCELLED", "TERMINATED"].includes(now.state) && isNew) tell("failed", detail);
    if (now.panel !== "reading" || !isSame) shown = now;
  }

  document.addEventListener("htmx:after:swap", report);
  closing.addEventListener("click", () => tell("closed", { id: shown.upload, state: shown.state }));
  new ResizeObserver(() => {
    tell("height", { height: Math.ceil(document.body.getBoundingClientRect().height) });
  }).observe(document.body);

  window.docflow = { go, headers, renew };
  renew();
})();
